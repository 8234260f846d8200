// What each query looked at: read off the weights as they pass, block by block.
#pragma once

#include "weights.hpp"

namespace regard::REGARD_ISA {

// The keys with the largest scores of each query of a panel, sorted; earlier keys win ties.
template <class T>
class Best {
  public:
    using V = Simd<T>;
    static constexpr int L = V::lanes;

    Best(const Panel<T> &panel, Index number, Scratch &scratch)
        : panel_(panel),
          number_(number),
          scores_(scratch.take<T>(panel.width * number)),
          keys_(scratch.take<Index>(panel.width * number)),
          least_(scratch.take<T>(panel.width)) {
        for (Index i = 0; i < panel.width * number; ++i) {
            scores_[i] = -INFINITY;
            keys_[i] = -1;
        }
        for (int lane = 0; lane < panel.width; ++lane) least_[lane] = -INFINITY;
    }

    void take_in(const Run &run) {
        panel_.each_vector(run, [&](Index i, int j, int c) {
            const auto score = V::load(panel_.scores + i);
            std::uint32_t better = V::less_bits(V::load(least_ + c * L), score);
            for (; better != 0; better &= better - 1) {
                const int lane = __builtin_ctz(better);
                insert(c * L + lane, panel_.scores[i + lane], panel_.begin + j);
            }
        });
    }

    void write(const Inspection &call, const T *log_sums) const {
        for (int lane = 0; lane < panel_.lanes; ++lane) {
            const Index to = panel_.of_query(lane) * number_;
            for (Index i = 0; i < number_; ++i) {
                const T score = scores_[lane * number_ + i];
                static_cast<T *>(call.top_weights)[to + i] =
                    score == -INFINITY ? 0 : std::exp2(std::min<T>(0, score - log_sums[lane]));
                call.top_keys[to + i] = keys_[lane * number_ + i];
            }
        }
    }

  private:
    const Panel<T> &panel_;
    const Index number_;
    T *const scores_;  // (width, number)
    Index *const keys_;
    T *const least_;  // (width): what a score must exceed

    void insert(int lane, T score, Index key) {
        T *const scores = scores_ + lane * number_;
        Index *const keys = keys_ + lane * number_;
        Index at = number_ - 1;
        for (; at > 0 && scores[at - 1] < score; --at) {
            scores[at] = scores[at - 1];
            keys[at] = keys[at - 1];
        }
        scores[at] = score;
        keys[at] = key;
        least_[lane] = scores[number_ - 1];
    }
};

template <class T>
class PanelInspection {
  public:
    using V = Simd<T>;
    static constexpr int L = V::lanes;

    PanelInspection(const Inspection &call, const Place &place, Scratch &scratch)
        : call_(call),
          problem_(call.problem),
          panel_(problem_, place, scratch),
          log_sums_(scratch.take<T>(panel_.width)),
          entropy_(scratch.take<T>(panel_.width)),
          best_(panel_, call.top, scratch) {
        read_log_sums(panel_, call.lse, log_sums_);
        clear(entropy_, panel_.width);
    }

    // received: (group, n_k), for the heads that share this panel's keys.
    void run(double *received) {
        while (panel_.next()) {
            for (int r = 0; r < panel_.number_of_runs; ++r) {
                const Run &run = panel_.runs[r];
                if (call_.top > 0) best_.take_in(run);
                weigh(run);
                if (received) add_received(run, received);
                if (call_.n_rows > 0) write_rows(run);
            }
        }
        if (call_.entropy) panel_.write_lanes(entropy_, call_.entropy);
        if (call_.top > 0) best_.write(call_, log_sums_);
    }

  private:
    const Inspection &call_;
    const Problem &problem_;
    Panel<T> panel_;
    T *const log_sums_, *const entropy_;
    Best<T> best_;

    // Turns scores into weights, and adds −w log w of each to the entropies.
    void weigh(const Run &run) {
        const auto lowest = V::set(static_cast<T>(-1e4));  // whose weight is 0, as for −∞
        panel_.each_vector(run, [&](Index i, int, int c) {
            const auto power =
                power_of_weight<T>(V::load(panel_.scores + i), V::load(log_sums_ + c * L));
            const auto weight = exp2<T>(power);
            V::store(panel_.scores + i, weight);
            const auto information = V::mul(V::less(power, lowest, lowest, power), V::set(-static_cast<T>(LN_2)));
            V::store(entropy_ + c * L, V::fma(weight, information, V::load(entropy_ + c * L)));
        });
    }

    void add_received(const Run &run, double *received) {
        const Place &place = panel_.place;
        const Index group_head = place.head - place.kv_head * problem_.group();
        for (int j = run.begin; j < run.end; ++j) {
            const T *weights = panel_.scores + j * panel_.width;
            double *to = received + group_head * problem_.n_k + panel_.begin + j;
            const int last = std::min((run.vector + run.vectors) * L, panel_.lanes);
            int lane = run.vector * L;
            if (place.heads == 1) {
                auto sum = V::zero();
                for (; lane + L <= last; lane += L) sum = V::add(sum, V::load(weights + lane));
                *to += V::sum(sum);
            }
            for (; lane < last; ++lane) to[lane / place.queries * problem_.n_k] += weights[lane];
        }
    }

    void write_rows(const Run &run) {
        for (Index row = 0; row < call_.n_rows; ++row) {
            const Index query = call_.row_places[row] - panel_.place.query;
            if (query < 0 || query >= panel_.place.queries) continue;
            for (Index h = 0; h < panel_.place.heads; ++h) {
                const Index lane = h * panel_.place.queries + query;
                const Index vector = lane / L - run.vector;
                if (vector < 0 || vector >= run.vectors) continue;
                const Index head = panel_.place.batch * problem_.heads + panel_.place.head + h;
                T *to = static_cast<T *>(call_.rows) + (head * call_.n_rows + row) * problem_.n_k;
                for (int j = run.begin; j < run.end; ++j) {
                    to[panel_.begin + j] = panel_.scores[j * panel_.width + lane];
                }
            }
        }
    }
};

// Rows and what was received start as 0: hidden places are not visited.
template <class T>
void inspect(const Inspection &call) {
    const Problem &p = call.problem;
    const Index heads = p.batch * p.kv_heads;
    if (heads * p.group() * p.n_q == 0) return;
    const Panels panels(p, Panel<T>::W);
    const Chunks chunks(p, panels);
    const Index size = call.received ? p.group() * p.n_k : 0;
    const Memory sums(heads * chunks.of_each * size * Index{sizeof(double)});
    parallel_for(heads * chunks.of_each, [&](Index item) {
        double *const received = call.received ? sums.as<double>() + item * size : nullptr;
        if (received) clear(received, size);
        chunks.each_panel(item, [&](Index number) {
            PanelInspection<T>(call, panels.place(p, number), Scratch::of_thread()).run(received);
        });
    });
    for (Index i = 0; i < heads * size; ++i) {
        double sum = 0;
        for (Index c = 0; c < chunks.of_each; ++c) {
            sum += sums.as<double>()[(i / size * chunks.of_each + c) * size + i % size];
        }
        static_cast<T *>(call.received)[i] = static_cast<T>(sum);
    }
}

}  // namespace regard::REGARD_ISA
