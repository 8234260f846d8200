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
        : step_(step), entry_(entry), wide_heads_(step.heads + 2 * step.kv_heads) {
        Scratch &scratch = Scratch::of_thread();
        const Index keys = step.filled + step.tokens;
        vector_ = scratch.take<T>(round_up(step.dim, L));
        output_ = scratch.take<T>(round_up(step.dim, L));
        weights_ = scratch.take<T>(round_up(keys, L));
        visible_ = scratch.take<Index>(keys);
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
    const Index entry_, wide_heads_;
    T *vector_, *output_, *weights_;
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
        for (Index i = 0; i < half; ++i) {
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
        const Index dim = step_.dim, shared = head / (step_.heads / step_.kv_heads);
        read_turned(token, head, vector_);
        const T scale = static_cast<T>(step_.scale * LOG2_E);
        for (Index i = 0; i < dim; ++i) vector_[i] *= scale;
        T largest = -INFINITY;
        for (Index i = 0; i < number; ++i) {
            weights_[i] = dot(vector_, step_.keys.at<S>(entry_, shared, visible_[i]));
            largest = weights_[i] > largest ? weights_[i] : largest;
        }
        const T sum = weigh(number, largest);
        clear(output_, dim);
        for (Index i = 0; i < number; ++i) {
            add(weights_[i], step_.values.at<S>(entry_, shared, visible_[i]));
        }
        for (Index i = 0; i < dim; ++i) output_[i] = number ? output_[i] / sum : 0;
        const Index row = (entry_ * step_.tokens + token) * step_.heads + head;
        write_row(output_, dim, static_cast<S *>(step_.out) + row * dim, 1);
    }

    // Scores become weights; their sum.
    T weigh(Index number, T largest) const {
        for (Index i = number; i < round_up(number, L); ++i) weights_[i] = -INFINITY;
        auto sum = V::zero();
        for (Index i = 0; i < number; i += L) {
            const auto weight = exp2<T>(V::sub(V::load(weights_ + i), V::set(largest)));
            V::store(weights_ + i, weight);
            sum = V::add(sum, weight);
        }
        return V::sum(sum);
    }

    T dot(const T *a, const S *b) const {
        auto sums = V::zero();
        Index i = 0;
        for (; i + L <= step_.dim; i += L) sums = V::fma(V::load(a + i), V::load(b + i), sums);
        T sum = V::sum(sums);
        for (; i < step_.dim; ++i) sum += a[i] * static_cast<T>(widen(b[i]));
        return sum;
    }

    void add(T weight, const S *value) const {
        const auto weights = V::set(weight);
        Index i = 0;
        for (; i + L <= step_.dim; i += L) {
            V::store(output_ + i, V::fma(weights, V::load(value + i), V::load(output_ + i)));
        }
        for (; i < step_.dim; ++i) output_[i] += weight * static_cast<T>(widen(value[i]));
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
