// A panel: queries side by side in the lanes of a few vectors, walked over their keys in blocks.
//
// Scores stand as (key, query): keys and values are read where they lie and only the queries are
// packed; maxima, sums and masks of a query stay in its lane.
#pragma once

#include <algorithm>

#include "math.hpp"
#include "rows.hpp"
#include "scratch.hpp"
#include "tile.hpp"

namespace regard::REGARD_ISA {

template <class T>
constexpr DType dtype_of = sizeof(T) == sizeof(double) ? DType::float64 : DType::float32;

using Bits = std::uint64_t;  // one for each query of a panel

// Which queries: `queries` of each of `heads` heads that share their keys.
struct Place {
    Index batch, kv_head, head, heads, query, queries;
};

// The part of a block in which somebody looks: keys begin … end − 1, and a range of vectors.
struct Run {
    int begin, end, vector, vectors;
};

// How the queries of a problem are cut into panels.
struct Panels {
    Index heads_each, queries_each, head_blocks, query_blocks;

    Panels(const Problem &p, Index width) {
        queries_each = std::max<Index>(1, std::min(width, p.n_q));
        const Index fitting = p.n_q < width ? std::min(p.group(), width / queries_each) : 1;
        heads_each = std::max<Index>(1, fitting);
        head_blocks = (p.group() + heads_each - 1) / heads_each;
        query_blocks = (p.n_q + queries_each - 1) / queries_each;
    }

    Index each() const { return head_blocks * query_blocks; }  // panels of one key head

    // Late queries first, since under a causal mask they have the most to do; but where windows make
    // all alike, early ones, so that each reads on where the one before has stopped.
    Place place(const Problem &p, Index number) const {
        const Index of_head = number / each(), block = number % each();
        const Index from_start = block / head_blocks, from_end = query_blocks - 1 - from_start;
        Place place{};
        place.batch = of_head / p.kv_heads;
        place.kv_head = of_head % p.kv_heads;
        place.head = place.kv_head * p.group() + block % head_blocks * heads_each;
        place.heads = std::min(heads_each, (place.kv_head + 1) * p.group() - place.head);
        place.query = (p.left < 0 ? from_end : from_start) * queries_each;
        place.queries = std::min(queries_each, p.n_q - place.query);
        return place;
    }
};

// Transposes 64 × 64 bits: bit j of word i becomes bit i of word j.
inline void transpose_bits(Bits word[64]) {
    Bits mask = 0x00000000ffffffffu;
    for (int size = 32; size != 0; size >>= 1, mask ^= mask << size) {
        for (int i = 0; i < 64; i = ((i | size) + 1) & ~size) {
            const Bits swap = (word[i] >> size ^ word[i | size]) & mask;
            word[i] ^= swap << size;
            word[i | size] ^= swap;
        }
    }
}

// Bit j is set where byte j is not 0, for n ≤ 64 bytes.
inline Bits bits_of_bytes(const char *bytes, Index stride, Index n) {
    if (stride == 1 && n == 64) return bits_of_64_bytes(bytes);
    Bits bits = 0;
    for (Index j = 0; j < n; ++j) bits |= static_cast<Bits>(bytes[j * stride] != 0) << j;
    return bits;
}

template <class T>
class Panel {
  public:
    using V = Simd<T>;
    static constexpr int L = V::lanes, W = L * V::tile_vectors, KEYS = 96;

    const Problem &problem;
    const Place place;
    const int lanes, vectors;  // in use
    const Index width;         // lanes with their padding
    const bool few;            // queries: vectors then run along the coordinates, not across lanes
    T *const scores;           // (KEYS, width), in units of log 2
    T *const query_rows;       // (width, d_k rounded up)
    T *const few_rows;         // twice (L, d_v), where there are `few`; what no query has stays 0
    Run runs[KEYS];
    int number_of_runs = 0;
    Bits live[KEYS];         // who may see each key of this block, when `hides`
    bool hides = false;      // somebody may not see something in this block
    bool ever_hid = false;   // in this or an earlier block
    T *tanhs = nullptr;      // (KEYS, width): those of a softcap, if somebody wants to have them
    Index begin = 0, end = 0;  // the keys of this block

    Panel(const Problem &p, const Place &at, Scratch &scratch)
        : problem(p),
          place(at),
          lanes(static_cast<int>(at.heads * at.queries)),
          vectors((lanes + L - 1) / L),
          width(vectors * L),
          few(2 * lanes <= L && p.d_k % L == 0 && p.d_v % L == 0),
          scores(scratch.take<T>(KEYS * width)),
          query_rows(scratch.take<T>(width * round_up(p.d_k, L))),
          few_rows(scratch.take<T>(few ? 2 * L * p.d_v : 0)),
          used_(lanes == 64 ? ~Bits{0} : (Bits{1} << lanes) - 1),
          key_rows_(scratch.take<T>(KEYS * std::max(p.d_k, p.d_v))),
          value_rows_(scratch.take<T>(KEYS * p.d_v)),
          queries_(scratch.take<T>(round_up(p.d_k, L) * width)) {
        find_intervals();
        pack(p.q, p.d_k, query_rows, queries_, factor());
        if (few) clear(few_rows, L * p.d_v);
    }

    Index head(int lane) const { return place.head + lane / place.queries; }
    Index query(int lane) const { return place.query + lane % place.queries; }

    // Only the keys first … last − 1 from here on.
    void restrict_keys(Index first, Index last) {
        next_ = std::max(next_, first);
        last_ = std::min(last_, last);
    }

    // Walks from the beginning again.
    void rewind(Index first) { next_ = std::max(first_, first); }

    // Computes the scores of the next block that somebody looks at; hidden ones are −∞.
    bool next() {
        while (next_ < last_) {
            begin = next_;
            end = std::min(begin + block_size(last_ - begin), last_);
            if (begin < problem.n_past) end = std::min(end, problem.n_past);
            next_ = end;
            if (find_runs()) {
                compute_scores();
                return true;
            }
        }
        return false;
    }

    // Calls visit(place in the block, key, vector) for the vectors of a run.
    template <class Visit>
    void each_vector(const Run &run, const Visit &visit) const {
        for (int j = run.begin; j < run.end; ++j) {
            for (int c = run.vector; c < run.vector + run.vectors; ++c) visit(j * width + c * L, j, c);
        }
    }

    // Which queries of a vector may see key j of this block.
    std::uint32_t live_bits(int j, int vector) const {
        return static_cast<std::uint32_t>(live[j] >> vector * L);
    }

    // Rows of numbers, each contiguous.
    struct Rows {
        const T *first;
        Index apart;

        const T *operator[](Index j) const { return first + j * apart; }
    };

    // Those of this block's keys or values.
    Rows keys() { return rows_of(problem.k, problem.past_k, problem.d_k, key_rows_); }
    Rows values() { return rows_of(problem.v, problem.past_v, problem.d_v, value_rows_); }

    // values() where 0 stands for whatever is not finite, each of which goes to found(key, d, value).
    template <class Found>
    Rows finite_values(const Found &found) {
        const Rows from = values();
        for (Index j = 0; j < end - begin; ++j) {
            for (Index d = 0; d < problem.d_v; ++d) {
                const T value = from[j][d];
                const bool finite = value - value == 0;
                if (!finite) found(j, d, value);
                value_rows_[j * problem.d_v + d] = finite ? value : 0;
            }
        }
        return {value_rows_, problem.d_v};
    }

    // Reads an array like q into rows (width, d rounded up), and packs it as (d, width) times factor.
    void pack(const Array &from, Index d, T *rows, T *packed, T factor) const {
        const Index ld = round_up(d, L);
        if (lanes < width || d < ld) clear(rows, width * ld);
        for (int lane = 0; lane < lanes; ++lane) read_lane(from, lane, d, rows + lane * ld);
        for (int c = 0; c < vectors; ++c) {
            transpose(rows + c * L * ld, ld, L, static_cast<int>(ld / L), packed + c * L, width);
        }
        const auto scale = V::set(factor);
        for (Index i = 0; i < d * width; i += L) V::store(packed + i, V::mul(scale, V::load(packed + i)));
    }

    // Writes packed (d rounded up, width) into an array like out.
    void unpack(const T *packed, T *rows, const Array &to, Index d) const {
        const Index ld = round_up(d, L);
        if (T *const in_place = rows_in_place(to, d)) {
            return transpose(packed, width, d, vectors, in_place, to.strides[2]);
        }
        transpose(packed, width, ld, vectors, rows, ld);
        with_storage<T>(problem.dtype, [&](auto stored) {
            using S = decltype(stored);
            for (int lane = 0; lane < lanes; ++lane) {
                S *row = to.at<S>(place.batch, head(lane), query(lane));
                write_row(rows + lane * ld, d, row, to.strides[3]);
            }
        });
    }

    void read_lane(const Array &from, int lane, Index d, T *to) const {
        with_storage<T>(problem.dtype, [&](auto stored) {
            using S = decltype(stored);
            const S *row = from.at<S>(place.batch, head(lane), query(lane));
            read_row(row, from.strides[3], d, to);
        });
    }

    // A number for each query, from an array laid out as (batch, heads, n_q).
    void read_lanes(const void *from, T *to) const {
        for (int lane = 0; lane < width; ++lane) {
            to[lane] = lane < lanes ? static_cast<const T *>(from)[of_query(lane)] : 0;
        }
    }
    void write_lanes(const T *from, void *to) const {
        for (int lane = 0; lane < lanes; ++lane) static_cast<T *>(to)[of_query(lane)] = from[lane];
    }
    Index of_query(int lane) const {
        return (place.batch * problem.heads + head(lane)) * problem.n_q + query(lane);
    }

  private:
    const Bits used_;
    T *const key_rows_, *const value_rows_, *const queries_;
    Index low_[W], high_[W];  // a query sees keys low … high − 1 at most
    Index max_low_ = 0, min_high_ = 0, first_ = 0, last_ = 0, next_ = 0;

    // Blocks of like size, since short ones cost more.
    static Index block_size(Index keys) {
        const Index blocks = (keys + KEYS - 1) / KEYS;
        return round_up((keys + blocks - 1) / blocks, L);
    }

    // From the products of queries and keys to scores in units of log 2, or to what softcap is given.
    T factor() const {
        const double unit = problem.softcap > 0 ? 1 / problem.softcap : LOG2_E;
        return static_cast<T>(problem.scale * unit);
    }

    void find_intervals() {
        const Problem &p = problem;
        const Index all = p.lengths ? std::min(p.n_k, p.lengths[place.batch]) : p.n_k;
        const Index offset = p.offsets ? p.offsets[place.batch] : 0;
        const Index prefix = p.prefix ? p.prefix[place.batch] : 0;
        first_ = min_high_ = p.n_k;
        for (int lane = 0; lane < lanes; ++lane) {
            const Index at = query(lane) + offset;
            Index high = all;
            if (p.causal) high = std::min(high, std::max(at + 1, prefix));
            if (p.right >= 0) high = std::min(high, at + p.right + 1);
            low_[lane] = p.left >= 0 ? std::min(std::max<Index>(0, at - p.left), all) : 0;
            high_[lane] = std::max(low_[lane], high);
            max_low_ = std::max(max_low_, low_[lane]);
            min_high_ = std::min(min_high_, high_[lane]);
            if (low_[lane] == high_[lane]) continue;
            first_ = std::min(first_, low_[lane]);
            last_ = std::max(last_, high_[lane]);
        }
        next_ = first_;
    }

    // Finds who looks at what in this block; false when nobody looks at anything.
    bool find_runs() {
        const int n = static_cast<int>(end - begin);
        hides = max_low_ > begin || min_high_ < end;
        if (hides) {
            mark_intervals(n);
        } else {
            for (int j = 0; j < n; ++j) live[j] = used_;
        }
        if (problem.q_segments) mark_segments(n);
        if (problem.mask) mark_mask(n);
        if (problem.mask || problem.q_segments) {
            hides = false;
            for (int j = 0; j < n; ++j) hides |= live[j] != used_;
        }
        number_of_runs = 0;
        if (!hides) {
            runs[number_of_runs++] = {0, n, 0, vectors};
        } else {
            cut_runs(n);
        }
        ever_hid |= hides;
        return number_of_runs > 0;
    }

    // Where the rows of all lanes can be written as vectors; nothing where they cannot.
    T *rows_in_place(const Array &to, Index d) const {
        const bool alike = problem.dtype == dtype_of<T> && to.strides[3] == 1 && place.heads == 1;
        if (!alike || d % L != 0 || lanes != width) return nullptr;
        return to.at<T>(place.batch, place.head, place.query);
    }

    void mark_intervals(int n) {
        Bits starts[KEYS + 1] = {}, ends[KEYS + 1] = {};
        for (int lane = 0; lane < lanes; ++lane) {
            const auto at = [&](Index key) { return std::clamp<Index>(key - begin, 0, n); };
            starts[at(low_[lane])] |= Bits{1} << lane;
            ends[at(high_[lane])] |= Bits{1} << lane;
        }
        Bits now = 0;
        for (int j = 0; j < n; ++j) {
            now = (now | starts[j]) & ~ends[j];
            live[j] = now;
        }
    }

    void mark_segments(int n) {
        const Array &q = problem.q_segments, &k = problem.k_segments;
        Index ids[W];
        Bits members[W];
        int known = 0;
        for (int lane = 0; lane < lanes; ++lane) {
            const Index id = *q.at<Index>(place.batch, query(lane));
            int which = known > 0 && ids[known - 1] == id ? known - 1 : 0;
            while (which < known && ids[which] != id) ++which;
            if (which == known) {
                ids[known] = id;
                members[known++] = 0;
            }
            members[which] |= Bits{1} << lane;
        }
        for (int j = 0; j < n; ++j) {
            const Index id = *k.at<Index>(place.batch, begin + j);
            int which = 0;
            while (which < known && ids[which] != id) ++which;
            live[j] &= which < known ? members[which] : 0;
        }
    }

    void mark_mask(int n) {
        const Array &mask = problem.mask;
        const auto row = [&](int lane) {
            return mask.at<char>(place.batch, head(lane), query(lane)) + begin * mask.strides[3];
        };
        const bool same = mask.strides[2] == 0 && (place.heads == 1 || mask.strides[1] == 0);
        for (int j = 0; j < n; j += 64) {
            const int part = std::min(64, n - j);
            const Index stride = mask.strides[3];
            if (same) {
                const Bits bits = bits_of_bytes(row(0) + j * stride, stride, part);
                for (int i = 0; i < part; ++i) live[j + i] &= bits >> i & 1 ? ~Bits{0} : 0;
                continue;
            }
            Bits words[64] = {};
            for (int lane = 0; lane < lanes; ++lane) {
                words[lane] = bits_of_bytes(row(lane) + j * stride, stride, part);
            }
            transpose_bits(words);
            for (int i = 0; i < part; ++i) live[j + i] &= words[i];
        }
    }

    void cut_runs(int n) {
        constexpr int step = 16;
        for (int j = 0; j < n; j += step) {
            const int stop = std::min(j + step, n);
            Bits seen = 0;
            for (int i = j; i < stop; ++i) seen |= live[i];
            if (seen == 0) continue;
            const int vector = __builtin_ctzll(seen) / L;
            const int count = (63 - __builtin_clzll(seen)) / L - vector + 1;
            Run *before = number_of_runs > 0 ? &runs[number_of_runs - 1] : nullptr;
            if (before && before->end == j && before->vector == vector && before->vectors == count) {
                before->end = stop;
            } else {
                runs[number_of_runs++] = {j, stop, vector, count};
            }
        }
    }

    Rows rows_of(const Array &now, const Array &past, Index d, T *buffer) {
        const bool old = begin < problem.n_past;
        const Array &from = old ? past : now;
        const Index token = old ? begin : begin - problem.n_past;
        Rows rows{buffer, d};
        with_storage<T>(problem.dtype, [&](auto stored) {
            using S = decltype(stored);
            const S *first = from.at<S>(place.batch, place.kv_head, token);
            if constexpr (std::is_same_v<S, T>) {
                if (from.strides[3] == 1) {
                    rows = {first, from.strides[2]};
                    return;
                }
            }
            for (Index j = 0; j < end - begin; ++j) {
                read_row(first + j * from.strides[2], from.strides[3], d, buffer + j * d);
            }
        });
        return rows;
    }

    void compute_scores() {
        const Rows from = keys();
        for (int r = 0; r < number_of_runs; ++r) {
            const Run &run = runs[r];
            if (few) {
                compute_few_scores(run, from);
            } else {
                product<T, By::rows>(run.end - run.begin, run.vectors, from[run.begin], from.apart,
                                     queries_ + run.vector * L, width,
                                     scores + run.begin * width + run.vector * L, width,
                                     problem.d_k, false);
            }
            if (problem.softcap > 0) cap(run);
            if (problem.bias) add_bias(run);
            if (hides) hide(run);
        }
    }

    // A vector of keys at a time for one query after another.
    void compute_few_scores(const Run &run, Rows from) {
        const auto scale = V::set(factor());
        for (int j = run.begin; j < run.end; j += L) {
            const T *rows[L];
            for (int i = 0; i < L; ++i) rows[i] = from[std::min(j + i, run.end - 1)];
            typename V::reg of_lane[L];
            for (auto &products : of_lane) products = V::zero();
            for (int lane = 0; lane < lanes; ++lane) {
                const T *query = query_rows + lane * problem.d_k;
                typename V::reg sum[L];
                for (auto &one : sum) one = V::zero();
                for (Index d = 0; d < problem.d_k; d += L) {
                    const auto coordinates = V::load(query + d);
                    REGARD_UNROLL_ALL
                    for (int i = 0; i < L; ++i) sum[i] = V::fma(V::load(rows[i] + d), coordinates, sum[i]);
                }
                V::transpose(sum);
                for (int half = L / 2; half > 0; half /= 2) {
                    for (int i = 0; i < half; ++i) sum[i] = V::add(sum[i], sum[i + half]);
                }
                of_lane[lane] = V::mul(sum[0], scale);
            }
            V::transpose(of_lane);
            for (int i = 0; i < L && j + i < run.end; ++i) V::store(scores + (j + i) * width, of_lane[i]);
        }
    }

    void cap(const Run &run) {
        const auto largest = V::set(static_cast<T>(problem.softcap * LOG2_E));
        each_vector(run, [&](Index i, int, int) {
            const auto size = tanh<T>(V::load(scores + i));
            if (tanhs) V::store(tanhs + i, size);
            V::store(scores + i, V::mul(size, largest));
        });
    }

    // A bias of −∞ hides, whatever the score was.
    void add_bias(const Run &run) {
        const Array &bias = problem.bias;
        const auto hidden = V::set(-INFINITY), lowest = V::set(std::numeric_limits<T>::lowest());
        const auto unit = V::set(static_cast<T>(LOG2_E));
        for (int c = run.vector; c < run.vector + run.vectors; ++c) {
            const T *row[L];
            for (int lane = 0; lane < L; ++lane) {
                const int with = std::min(c * L + lane, lanes - 1);
                row[lane] = bias.at<T>(place.batch, head(with), query(with));
            }
            for (int j = run.begin; j < run.end; ++j) {
                alignas(64) T column[L];
                const Index at = (begin + j) * bias.strides[3];
                for (int lane = 0; lane < L; ++lane) column[lane] = row[lane][at];
                const auto extra = V::load(column);
                T *score = scores + j * width + c * L;
                const auto sum = V::max(lowest, V::fma(extra, unit, V::load(score)));
                const Bits bits = V::less_bits(extra, lowest);
                V::store(score, V::choose(static_cast<std::uint32_t>(bits), hidden, sum));
                live[j] &= ~(bits << c * L);
                hides |= bits != 0;
            }
        }
        ever_hid |= hides;
    }

    void hide(const Run &run) {
        const auto hidden = V::set(-INFINITY);
        Bits by_all = ~Bits{0};
        for (int j = run.begin; j < run.end; ++j) by_all &= live[j];
        for (int c = run.vector; c < run.vector + run.vectors; ++c) {
            const Bits of_vector = (Bits{1} << L) - 1;
            if ((by_all >> c * L & of_vector) == of_vector) continue;
            for (int j = run.begin; j < run.end; ++j) {
                T *const score = scores + j * width + c * L;
                V::store(score, V::choose(live_bits(j, c), V::load(score), hidden));
            }
        }
    }
};

}  // namespace regard::REGARD_ISA
