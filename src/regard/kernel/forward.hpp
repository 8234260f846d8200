// Attention of all queries, with a softmax that is corrected as larger scores are met.
#pragma once

#include "panel.hpp"
#include "threads.hpp"

namespace regard::REGARD_ISA {

// Not above any score, and finite, so that differences stay numbers.
template <class T>
constexpr T NO_SCORE = std::numeric_limits<T>::lowest();

// What is known of a panel's output after some of its keys.
template <class T>
struct State {
    T *largest;  // (width): the score that weighs 1, in units of log 2
    T *sum;      // (width): of the weights so far
    T *output;   // (d_v rounded up, width): the weighted sum of the values so far

    static Index size(Index width, Index d_v) {
        return width * (2 + round_up(d_v, Simd<T>::lanes));
    }
    State(T *memory, Index width)
        : largest(memory), sum(memory + width), output(memory + 2 * width) {}
};

template <class T>
class Softmax {
  public:
    using V = Simd<T>;
    static constexpr int L = V::lanes;

    Softmax(Panel<T> &panel, State<T> state, bool with_sinks)
        : panel_(panel), problem_(panel.problem), state_(state), with_sinks_(with_sinks) {}

    // Takes in all keys from `first` on. Weights of 0 must not carry over NaN or infinities of
    // values that are hidden; that is rare enough to be looked for afterwards.
    void run(Index first) {
        walk(first, false);
        if (panel_.ever_hid && !is_finite()) walk(first, true);
    }

    // Divides by the sums; writes the output and the logarithms of the sums.
    void finish(const Forward &call, T *rows) {
        const Index width = panel_.width;
        if (call.lse) write_log_sums(call.lse);
        for (int lane = 0; lane < width; ++lane) {
            if (state_.sum[lane] == 0) state_.sum[lane] = INFINITY;
        }
        for (Index i = 0; i < problem_.d_v * width; i += width) {
            for (Index c = 0; c < width; c += L) {
                T *const at = state_.output + i + c;
                V::store(at, V::div(V::load(at), V::load(state_.sum + c)));
            }
        }
        panel_.unpack(state_.output, rows, call.out, problem_.d_v);
    }

  private:
    Panel<T> &panel_;
    const Problem &problem_;
    State<T> state_;
    const bool with_sinks_;

    void write_log_sums(void *lse) const {
        alignas(64) T log_sums[Panel<T>::W];
        for (int lane = 0; lane < panel_.width; ++lane) {
            const T sum = state_.sum[lane];
            log_sums[lane] = sum == 0 ? -INFINITY
                                      : static_cast<T>(LN_2) * (state_.largest[lane] + std::log2(sum));
        }
        panel_.write_lanes(log_sums, lse);
    }

    void walk(Index first, bool careful) {
        const Index width = panel_.width;
        for (int lane = 0; lane < width; ++lane) {
            const bool sink = with_sinks_ && lane < panel_.lanes;
            const T score = sink ? static_cast<const T *>(problem_.sinks)[panel_.head(lane)] : 0;
            const bool weighs = sink && score != -INFINITY;
            const T largest = weighs ? score * static_cast<T>(LOG2_E) : NO_SCORE<T>;
            state_.largest[lane] = std::max(largest, NO_SCORE<T>);
            state_.sum[lane] = weighs;
        }
        clear(state_.output, round_up(problem_.d_v, L) * width);
        panel_.rewind(first);
        while (panel_.next()) {
            for (int r = 0; r < panel_.number_of_runs; ++r) {
                with_vectors<T>(panel_.runs[r].vectors, [&](auto n) { raise<n>(panel_.runs[r]); });
            }
            for (int r = 0; r < panel_.number_of_runs; ++r) {
                with_vectors<T>(panel_.runs[r].vectors, [&](auto n) { weigh<n>(panel_.runs[r]); });
            }
            if (careful && panel_.hides) {
                add_values_carefully();
            } else {
                add_values(panel_.values());
            }
        }
    }

    // Takes in the largest scores of a run, unless they exceed those so far by 2¹⁰ at most, so that
    // the output seldom has to be rescaled. All runs of a block come before any weight of it, which
    // would have to be rescaled as well.
    template <int N>
    void raise(const Run &run) {
        constexpr int slack = 10;
        const Index width = panel_.width;
        const T *const scores = panel_.scores + run.vector * L;
        T *const largest = state_.largest + run.vector * L, *const sums = state_.sum + run.vector * L;
        typename V::reg most[N];
        for (int c = 0; c < N; ++c) most[c] = V::load(largest + c * L);
        for (int j = run.begin; j < run.end; ++j) {
            for (int c = 0; c < N; ++c) most[c] = V::max(V::load(scores + j * width + c * L), most[c]);
        }
        for (int c = 0; c < N; ++c) {
            const auto before = V::load(largest + c * L);
            if (V::less_bits(V::add(before, V::set(slack)), most[c]) == 0) continue;
            const auto factor = exp2<T>(V::sub(before, most[c]));
            V::store(largest + c * L, most[c]);
            V::store(sums + c * L, V::mul(V::load(sums + c * L), factor));
            T *const output = state_.output + (run.vector + c) * L;
            for (Index i = 0; i < problem_.d_v * width; i += width) {
                V::store(output + i, V::mul(V::load(output + i), factor));
            }
        }
    }

    // Turns the scores of a run into weights.
    template <int N>
    void weigh(const Run &run) {
        const Index width = panel_.width;
        T *const scores = panel_.scores + run.vector * L, *const sums = state_.sum + run.vector * L;
        typename V::reg most[N], sum[N];
        for (int c = 0; c < N; ++c) {
            most[c] = V::load(state_.largest + (run.vector + c) * L);
            sum[c] = V::zero();
        }
        for (int j = run.begin; j < run.end; ++j) {
            for (int c = 0; c < N; ++c) {
                T *const score = scores + j * width + c * L;
                const auto weight = exp2<T>(V::sub(V::load(score), most[c]));
                sum[c] = V::add(sum[c], weight);
                V::store(score, weight);
            }
        }
        for (int c = 0; c < N; ++c) V::store(sums + c * L, V::add(V::load(sums + c * L), sum[c]));
    }

    void add_values(typename Panel<T>::Rows values) {
        if (panel_.few) return add_values_to_few(values);
        const Index width = panel_.width;
        for (int r = 0; r < panel_.number_of_runs; ++r) {
            const Run &run = panel_.runs[r];
            product<T, By::columns>(problem_.d_v, run.vectors, values[run.begin], values.apart,
                                    panel_.scores + run.begin * width + run.vector * L, width,
                                    state_.output + run.vector * L, width, run.end - run.begin,
                                    true);
        }
    }

    void add_values_to_few(typename Panel<T>::Rows values) {
        const Index d_v = problem_.d_v;
        T *const rows = panel_.few_rows, *const packed = rows + L * d_v;
        for (int r = 0; r < panel_.number_of_runs; ++r) {
            const Run &run = panel_.runs[r];
            for (Index d = 0, vectors; d < d_v; d += vectors * L) {
                vectors = std::min<Index>(V::tile_vectors, (d_v - d) / L);
                product<T, By::columns>(panel_.lanes, static_cast<int>(vectors),
                                        panel_.scores + run.begin * L, L, values[run.begin] + d,
                                        values.apart, rows + d, d_v, run.end - run.begin, r > 0);
            }
        }
        transpose(rows, d_v, L, static_cast<int>(d_v / L), packed, L);
        for (Index i = 0; i < d_v * L; i += L) {
            V::store(state_.output + i, V::add(V::load(state_.output + i), V::load(packed + i)));
        }
    }

    void add_values_carefully() {
        const Index width = panel_.width;
        const auto values = panel_.finite_values([&](Index j, Index d, T value) {
            for (int lane = 0; lane < panel_.lanes; ++lane) {
                if (!(panel_.live[j] >> lane & 1)) continue;
                state_.output[d * width + lane] += panel_.scores[j * width + lane] * value;
            }
        });
        add_values(values);
    }

    bool is_finite() const {
        auto sum = V::zero();
        for (Index i = 0; i < problem_.d_v * panel_.width; i += L) {
            sum = V::fma(V::load(state_.output + i), V::zero(), sum);
        }
        return V::sum(sum) == 0;
    }
};

// Adds the states of the same panel after different keys into the first.
template <class T>
void merge(State<T> into, State<T> from, Index width, Index d_v) {
    using V = Simd<T>;
    for (Index c = 0; c < width; c += V::lanes) {
        const auto a = V::load(into.largest + c), b = V::load(from.largest + c), most = V::max(a, b);
        const auto left = exp2<T>(V::sub(a, most)), right = exp2<T>(V::sub(b, most));
        const auto add = [&](T *to, const T *more) {
            V::store(to, V::fma(V::load(more), right, V::mul(V::load(to), left)));
        };
        V::store(into.largest + c, most);
        add(into.sum + c, from.sum + c);
        for (Index d = 0; d < d_v; ++d) add(into.output + d * width + c, from.output + d * width + c);
    }
}

// How many parts the keys are cut into, when there are too few panels for the threads.
inline Index key_parts(Index panels, Index n_k) {
    constexpr Index smallest = 512;
    if (n_k < 2 * smallest) return 1;
    return std::max<Index>(1, std::min(threads() / panels, n_k / smallest));
}

template <class T>
void forward(const Forward &call) {
    using P = Panel<T>;
    const Problem &p = call.problem;
    if (p.batch * p.heads * p.n_q == 0) return;
    const Panels panels(p, P::W);
    const Index number = p.batch * p.kv_heads * panels.each(), parts = key_parts(number, p.n_k);
    const Index part = (p.n_k + parts - 1) / parts, size = State<T>::size(P::W, p.d_v);
    const Memory partial(parts > 1 ? number * parts * size * Index{sizeof(T)} : 0);
    T *const states = partial.as<T>();
    parallel_for(number * parts, [&](Index item) {
        Scratch &scratch = Scratch::of_thread();
        const Index first = item % parts * part;
        P panel(p, panels.place(p, item / parts), scratch);
        const State<T> state(parts > 1 ? states + item * size : scratch.take<T>(size), panel.width);
        panel.restrict_keys(first, first + part);
        Softmax<T> softmax(panel, state, p.sinks && first == 0);
        softmax.run(first);
        if (parts == 1) {
            softmax.finish(call, scratch.take<T>(panel.width * round_up(p.d_v, P::L)));
        }
    });
    if (parts == 1) return;
    parallel_for(number, [&](Index item) {
        Scratch &scratch = Scratch::of_thread();
        P panel(p, panels.place(p, item), scratch);
        const State<T> whole(states + item * parts * size, panel.width);
        for (Index i = 1; i < parts; ++i) {
            merge(whole, State<T>(states + (item * parts + i) * size, panel.width), panel.width, p.d_v);
        }
        Softmax<T>(panel, whole, false)
            .finish(call, scratch.take<T>(panel.width * round_up(p.d_v, P::L)));
    });
}

}  // namespace regard::REGARD_ISA
