// One more token of every hypothesis: rotates, writes keys and values into the cache, attends.
//
// The queries of a batch entry are few and see few keys, each its own, so that products of
// matrices would mostly compute what is hidden.
#pragma once

#include <algorithm>

#include "math.hpp"
#include "rows.hpp"
#include "threads.hpp"

namespace regard::REGARD_ISA {

template <class T, class S>
class Stepping {
  public:
    using V = Simd<T>;
    static constexpr int L = V::lanes;

    Stepping(const Step &step, Index entry)
        : step_(step), entry_(entry), wide_heads_(step.heads + 2 * step.kv_heads),
          group_(step.heads / step.kv_heads) {
        Scratch &scratch = Scratch::of_thread();
        const Index keys = step.filled + step.tokens;
        vector_ = scratch.take<T>(round_up(step.dim, L));
        weights_ = scratch.take<T>(round_up(keys, L));
        visible_ = scratch.take<Index>(keys + 1);
    }

    void run() {
        for (Index token = 0; token < step_.tokens; ++token) remember(token);
        for (Index token = 0; token < step_.tokens; ++token) {
            const Index number = look(token);
            for (Index head = 0; head < step_.heads; ++head) attend(token, head, number);
        }
    }

  private:
    const Step &step_;
    const Index entry_, wide_heads_, group_;
    T *vector_, *weights_;
    Index *visible_;

    const S *wide(Index token, Index head) const {
        const Index row = entry_ * step_.tokens + token;
        return static_cast<const S *>(step_.wide) + (row * wide_heads_ + head) * step_.dim;
    }

    // Reads a vector and turns it by its place; coordinate i goes with coordinate i + half.
    void read_turned(Index token, Index head, T *to) const {
        read_row(wide(token, head), 1, step_.dim, to);
        if (!step_.turns) return;
        const Index row = entry_ * step_.tokens + token, half = step_.dim / 2;
        const T *cos = static_cast<const T *>(step_.turns) + row * step_.dim;
        const T *sin = cos + step_.batch * step_.tokens * step_.dim;
        Index i = 0;
        for (; i + L <= half; i += L) {
            const auto low = V::load(to + i), high = V::load(to + i + half);
            V::store(to + i, V::fma(low, V::load(cos + i), V::mul(high, V::load(sin + i))));
            V::store(to + i + half,
                     V::fma(high, V::load(cos + i + half), V::mul(low, V::load(sin + i + half))));
        }
        for (; i < half; ++i) {
            const T low = to[i], high = to[i + half];
            to[i] = low * cos[i] + high * sin[i];
            to[i + half] = high * cos[i + half] + low * sin[i + half];
        }
    }

    void remember(Index token) const {
        const Index place = step_.filled + token;
        for (Index head = 0; head < step_.kv_heads; ++head) {
            read_turned(token, step_.heads + head, vector_);
            write_row(vector_, step_.dim, step_.keys.at<S>(entry_, head, place), 1);
            const S *value = wide(token, step_.heads + step_.kv_heads + head);
            std::copy(value, value + step_.dim, step_.values.at<S>(entry_, head, place));
        }
    }

    // Lists the keys that a token may see.
    Index look(Index token) const {
        const char *seen = step_.seen.at<char>(entry_, token);
        Index number = 0;
        for (Index key = 0; key < step_.filled + step_.tokens; ++key) {
            visible_[number] = key;
            number += seen[key] != 0;
        }
        return number;
    }

    void attend(Index token, Index head, Index number) const {
        const Index dim = step_.dim, shared = head / group_;
        read_turned(token, head, vector_);
        const T scale = static_cast<T>(step_.scale * LOG2_E);
        for (Index i = 0; i < dim; ++i) vector_[i] *= scale;
        clear(vector_ + dim, round_up(dim, L) - dim);
        for (Index i = 0; i < number; i += L) score(shared, number, i);
        const T sum = weigh(number);
        for (Index i = 0; i < number; ++i) fetch_keys_after(head, visible_[i]);
        const Index row = (entry_ * step_.tokens + token) * step_.heads + head;
        S *out = static_cast<S *>(step_.out) + row * dim;
        Index done = 0;
        for (; done + 4 * L <= dim; done += 4 * L) mix<4>(shared, number, sum, done, out);
        for (; done + L <= dim; done += L) mix<1>(shared, number, sum, done, out);
        for (; done < dim; ++done) mix_one(shared, number, sum, done, out);
    }

    // The scores of L keys at once: a vector of partial sums for each, turned into one of sums.
    void score(Index shared, Index number, Index first) const {
        typename V::reg sums[L];
        for (int lane = 0; lane < L; ++lane) {
            const Index place = visible_[first + lane < number ? first + lane : first];
            const S *key = step_.keys.at<S>(entry_, shared, place);
            fetch(step_.values.at<S>(entry_, shared, place));
            sums[lane] = V::zero();
            Index i = 0;
            for (; i + L <= step_.dim; i += L) {
                sums[lane] = V::fma(V::load(vector_ + i), V::load(key + i), sums[lane]);
            }
            if (i < step_.dim) {
                alignas(64) T rest[L] = {};
                read_row(key + i, 1, step_.dim - i, rest);
                sums[lane] = V::fma(V::load(vector_ + i), V::load(rest), sums[lane]);
            }
        }
        V::transpose(sums);
        auto total = sums[0];
        for (int lane = 1; lane < L; ++lane) total = V::add(total, sums[lane]);
        V::store(weights_ + first, total);
    }

    // Scores become weights; their sum.
    T weigh(Index number) const {
        T largest = -INFINITY;
        for (Index i = 0; i < number; ++i) largest = weights_[i] > largest ? weights_[i] : largest;
        for (Index i = number; i < round_up(number, L); ++i) weights_[i] = -INFINITY;
        auto sum = V::zero();
        for (Index i = 0; i < number; i += L) {
            const auto weight = exp2<T>(V::sub(V::load(weights_ + i), V::set(largest)));
            V::store(weights_ + i, weight);
            sum = V::add(sum, weight);
        }
        return number ? V::sum(sum) : 1;
    }

    // Some vectors of the output, from coordinate `first` on.
    template <int vectors>
    void mix(Index shared, Index number, T sum, Index first, S *out) const {
        typename V::reg sums[vectors];
        for (auto &one : sums) one = V::zero();
        for (Index i = 0; i < number; ++i) {
            const S *value = step_.values.at<S>(entry_, shared, visible_[i]) + first;
            const auto weight = V::set(weights_[i]);
            for (int c = 0; c < vectors; ++c) {
                sums[c] = V::fma(weight, V::load(value + c * L), sums[c]);
            }
        }
        for (int c = 0; c < vectors; ++c) {
            V::store(out + first + c * L, V::div(sums[c], V::set(sum)));
        }
    }

    void mix_one(Index shared, Index number, T sum, Index at, S *out) const {
        T total = 0;
        for (Index i = 0; i < number; ++i) {
            const S value = step_.values.at<S>(entry_, shared, visible_[i])[at];
            total += weights_[i] * static_cast<T>(widen(value));
        }
        out[at] = narrow<S>(total / sum);
    }

    // Caches are larger than what a core keeps at hand: what comes next is asked for in time.
    void fetch(const S *row) const {
        for (Index i = 0; i < step_.dim; i += 64 / static_cast<Index>(sizeof(S))) {
            __builtin_prefetch(row + i);
        }
    }

    void fetch_keys_after(Index head, Index place) const {
        const bool last = head + 1 == step_.heads;
        if (last && entry_ + 1 == step_.batch) return;
        fetch(last ? step_.keys.at<S>(entry_ + 1, 0, place)
                   : step_.keys.at<S>(entry_, (head + 1) / group_, place));
    }
};

template <class T>
void step(const Step &call) {
    with_storage<T>(call.dtype, [&](auto stored) {
        using S = decltype(stored);
        parallel_for(call.batch, [&](Index entry) { Stepping<T, S>(call, entry).run(); });
    });
}

}  // namespace regard::REGARD_ISA
