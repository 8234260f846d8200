// Gradients of queries, keys and values: the weights are computed again, block by block.
#pragma once

#include "weights.hpp"

namespace regard::REGARD_ISA {

// c += aᵀ-like product with a wide right factor, a few vectors at a time.
template <class T>
void wide_product(Index rows, Index vectors, const T *a, Index lda, const T *b, Index ldb, T *c,
                  Index depth) {
    using V = Simd<T>;
    for (Index at = 0; at < vectors; at += V::tile_vectors) {
        const int part = static_cast<int>(std::min<Index>(V::tile_vectors, vectors - at));
        product<T, By::rows>(rows, part, a, lda, b + at * V::lanes, ldb, c + at * V::lanes, ldb,
                             depth, true);
    }
}

// The gradients of one panel; those of keys and values are added to rows that panels share.
template <class T>
class PanelGradient {
  public:
    using V = Simd<T>;
    static constexpr int L = V::lanes;

    PanelGradient(const Backward &call, const Place &place, Scratch &scratch)
        : call_(call),
          problem_(call.problem),
          panel_(problem_, place, scratch),
          ld_k_(round_up(problem_.d_k, L)),
          ld_v_(round_up(problem_.d_v, L)),
          log_sums_(scratch.take<T>(panel_.width)),
          inner_(scratch.take<T>(panel_.width)),
          d_out_rows_(scratch.take<T>(panel_.width * ld_v_)),
          d_out_(scratch.take<T>(ld_v_ * panel_.width)),
          d_scores_(scratch.take<T>(Panel<T>::KEYS * panel_.width)),
          d_q_(scratch.take<T>(ld_k_ * panel_.width)),
          finite_keys_(scratch.take<T>(Panel<T>::KEYS * problem_.d_k)) {
        if (problem_.softcap > 0) panel_.tanhs = scratch.take<T>(Panel<T>::KEYS * panel_.width);
        read_log_sums(panel_, call.lse, log_sums_);
        drop_wild_queries();
        find_inner_products(scratch.take<T>(ld_v_));
        panel_.pack(call.d_out, problem_.d_v, d_out_rows_, d_out_, 1);
        clear(d_q_, ld_k_ * panel_.width);
    }

    void run(T *d_k, T *d_v) {
        while (panel_.next()) {
            for (int r = 0; r < panel_.number_of_runs; ++r) {
                const Run &run = panel_.runs[r];
                const Index key = panel_.begin + run.begin;
                find_d_scores(run, d_v + key * ld_v_);
                wide_product(run.end - run.begin, ld_k_ / L, d_scores_ + at(run), panel_.width,
                             panel_.query_rows + run.vector * L * ld_k_, ld_k_, d_k + key * ld_k_,
                             run.vectors * L);
            }
            add_to_d_q();
        }
        for (Index i = 0; i < problem_.d_k * panel_.width; i += L) {
            V::store(d_q_ + i, V::mul(V::load(d_q_ + i), V::set(static_cast<T>(problem_.scale))));
        }
        panel_.unpack(d_q_, panel_.query_rows, call_.d_q, problem_.d_k);
    }

  private:
    const Backward &call_;
    const Problem &problem_;
    Panel<T> panel_;
    const Index ld_k_, ld_v_;
    T *const log_sums_, *const inner_;  // (width); inner: output · d_out
    T *const d_out_rows_, *const d_out_, *const d_scores_, *const d_q_, *const finite_keys_;

    Index at(const Run &run) const { return run.begin * panel_.width + run.vector * L; }

    // A query that is no number has scores that are none, which say so to the keys it sees; it
    // must not meet the zeros of those it does not see.
    void drop_wild_queries() {
        for (Index i = 0; i < panel_.width * ld_k_; ++i) {
            T &x = panel_.query_rows[i];
            if (x - x != 0) x = 0;
        }
    }

    void find_inner_products(T *row) {
        clear(inner_, panel_.width);
        T *const other = d_out_rows_;
        for (int lane = 0; lane < panel_.lanes; ++lane) {
            panel_.read_lane(call_.out, lane, problem_.d_v, row);
            panel_.read_lane(call_.d_out, lane, problem_.d_v, other);
            T sum = 0;
            for (Index d = 0; d < problem_.d_v; ++d) sum += row[d] * other[d];
            inner_[lane] = sum;
        }
    }

    // Turns scores into weights, adds to d_v, and finds how the loss changes with each score.
    void find_d_scores(const Run &run, T *d_v) {
        const Index width = panel_.width;
        T *const weights = panel_.scores;
        panel_.each_vector(run, [&](Index i, int j, int c) {
            const auto score = V::load(weights + i);
            auto weight = exp2<T>(power_of_weight<T>(score, V::load(log_sums_ + c * L)));
            if (panel_.hides) weight = V::choose(panel_.live_bits(j, c), weight, V::zero());
            V::store(weights + i, weight);
        });
        wide_product(run.end - run.begin, ld_v_ / L, weights + at(run), width,
                     d_out_rows_ + run.vector * L * ld_v_, ld_v_, d_v, run.vectors * L);
        const auto values = panel_.values();
        product<T, By::rows>(run.end - run.begin, run.vectors, values[run.begin], values.apart,
                             d_out_ + run.vector * L, width, d_scores_ + at(run), width,
                             problem_.d_v, false);
        panel_.each_vector(run, [&](Index i, int j, int c) {
            auto change = V::sub(V::load(d_scores_ + i), V::load(inner_ + c * L));
            change = V::mul(change, V::load(weights + i));
            if (panel_.hides) {
                change = V::choose(panel_.live_bits(j, c), change, V::zero());
            }
            V::store(d_scores_ + i, change);
        });
        if (call_.d_bias) write_d_bias(run);
        if (panel_.tanhs) {
            panel_.each_vector(run, [&](Index i, int j, int c) {
                const auto size = V::load(panel_.tanhs + i), change = V::load(d_scores_ + i);
                const auto slope = V::sub(V::set(1), V::mul(size, size));
                V::store(d_scores_ + i, V::choose(panel_.live_bits(j, c), V::mul(change, slope), V::zero()));
            });
        }
    }

    void write_d_bias(const Run &run) {
        for (int lane = run.vector * L; lane < (run.vector + run.vectors) * L; ++lane) {
            if (lane >= panel_.lanes) return;
            const Array &to = call_.d_bias;
            T *row = to.at<T>(panel_.place.batch, panel_.head(lane), panel_.query(lane));
            for (int j = run.begin; j < run.end; ++j) {
                row[(panel_.begin + j) * to.strides[3]] = d_scores_[j * panel_.width + lane];
            }
        }
    }

    void add_to_d_q() {
        const auto keys = panel_.hides ? finite_keys() : panel_.keys();
        for (int r = 0; r < panel_.number_of_runs; ++r) {
            const Run &run = panel_.runs[r];
            product<T, By::columns>(problem_.d_k, run.vectors, keys[run.begin], keys.apart,
                                    d_scores_ + at(run), panel_.width, d_q_ + run.vector * L,
                                    panel_.width, run.end - run.begin, true);
        }
    }

    // A hidden key has a gradient of 0, which must not meet its NaN; a visible NaN is in the
    // gradient of its score already.
    typename Panel<T>::Rows finite_keys() {
        const auto keys = panel_.keys();
        for (Index j = 0; j < panel_.end - panel_.begin; ++j) {
            for (Index d = 0; d < problem_.d_k; ++d) {
                const T x = keys[j][d];
                finite_keys_[j * problem_.d_k + d] = x - x == 0 ? x : 0;
            }
        }
        return {finite_keys_, problem_.d_k};
    }
};

// Adds up the chunks of one key head, and writes its gradients times factor.
template <class T>
void write_sums(const Problem &p, const Array &to, Index head, Index d, const T *sums,
                Index chunks, Index apart, T factor) {
    using V = Simd<T>;
    const Index ld = round_up(d, V::lanes);
    T *const row = Scratch::of_thread().take<T>(ld);
    for (Index j = 0; j < p.n_k; ++j) {
        for (Index i = 0; i < ld; i += V::lanes) {
            auto sum = V::zero();
            for (Index c = 0; c < chunks; ++c) sum = V::add(sum, V::load(sums + c * apart + j * ld + i));
            V::store(row + i, V::mul(sum, V::set(factor)));
        }
        with_storage<T>(p.dtype, [&](auto stored) {
            using S = decltype(stored);
            write_row(row, d, to.at<S>(head / p.kv_heads, head % p.kv_heads, j), to.strides[3]);
        });
    }
}

template <class T>
void backward(const Backward &call) {
    const Problem &p = call.problem;
    const Index heads = p.batch * p.kv_heads;
    if (heads == 0) return;
    const Panels panels(p, Panel<T>::W);
    const Chunks chunks(p, panels);
    const Index size_k = p.n_k * round_up(p.d_k, Simd<T>::lanes);
    const Index size = size_k + p.n_k * round_up(p.d_v, Simd<T>::lanes);
    const auto add_chunk = [&](Index item, T *sums) {
        clear(sums, size);
        chunks.each_panel(item, [&](Index number) {
            PanelGradient<T>(call, panels.place(p, number), Scratch::of_thread()).run(sums, sums + size_k);
        });
    };
    const auto write = [&](Index head, const T *sums) {
        write_sums(p, call.d_k, head, p.d_k, sums, chunks.of_each, size, static_cast<T>(p.scale));
        write_sums(p, call.d_v, head, p.d_v, sums + size_k, chunks.of_each, size, T{1});
    };
    if (chunks.of_each == 1) {
        parallel_for(heads, [&](Index head) {
            const Memory sums(size * Index{sizeof(T)});
            add_chunk(head, sums.as<T>());
            write(head, sums.as<T>());
        });
        return;
    }
    const Memory sums(heads * chunks.of_each * size * Index{sizeof(T)});
    parallel_for(heads * chunks.of_each, [&](Index i) { add_chunk(i, sums.as<T>() + i * size); });
    parallel_for(heads, [&](Index head) { write(head, sums.as<T>() + head * chunks.of_each * size); });
}

}  // namespace regard::REGARD_ISA
