// The weights of a panel when the sums of its softmax are known, and tasks that go over panels.
#pragma once

#include "panel.hpp"
#include "threads.hpp"

namespace regard::REGARD_ISA {

// The panels of each key head, cut into as many chunks as keep all threads busy.
struct Chunks {
    Index of_each, per_chunk, panels;  // of_each: chunks of one key head

    Chunks(const Problem &p, const Panels &cut) : panels(cut.each()) {
        const Index heads = p.batch * p.kv_heads;
        const Index wanted = heads >= threads() ? 1 : (threads() + heads - 1) / heads;
        per_chunk = std::max<Index>(1, (panels + wanted - 1) / wanted);
        of_each = std::max<Index>(1, (panels + per_chunk - 1) / per_chunk);
    }

    // Calls visit(number) for the panels of a chunk, numbered over all key heads.
    template <class Visit>
    void each_panel(Index item, const Visit &visit) const {
        const Index head = item / of_each, first = item % of_each * per_chunk;
        const Index last = std::min(first + per_chunk, panels);
        for (Index number = first; number < last; ++number) visit(head * panels + number);
    }
};

// In units of log 2. Where both are huge, rounding can make the score the larger; no weight is above 1.
template <class T>
typename Simd<T>::reg power_of_weight(typename Simd<T>::reg score, typename Simd<T>::reg log_sum) {
    using V = Simd<T>;
    const auto power = V::sub(score, log_sum);
    return V::less(V::zero(), power, V::zero(), power);
}

// The logarithms of the sums in units of log 2; 0 where nothing was seen, so that weights are 0.
template <class T>
void read_log_sums(const Panel<T> &panel, const void *lse, T *to) {
    panel.read_lanes(lse, to);
    for (int lane = 0; lane < panel.width; ++lane) {
        to[lane] = to[lane] == -INFINITY ? 0 : to[lane] * static_cast<T>(LOG2_E);
    }
}

}  // namespace regard::REGARD_ISA
