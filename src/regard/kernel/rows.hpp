// Moving numbers between the arrays of a caller and those that the kernel computes with.
#pragma once

#include "storage.hpp"

namespace regard::REGARD_ISA {

constexpr Index round_up(Index n, Index multiple) { return (n + multiple - 1) / multiple * multiple; }

template <class T>
void clear(T *numbers, Index n) {
    for (Index i = 0; i < n; ++i) numbers[i] = 0;
}

template <class T, class S>
void read_row(const S *from, Index stride, Index n, T *to) {
    using V = Simd<T>;
    Index i = 0;
    if constexpr (sizeof(S) <= sizeof(T)) {
        if (stride == 1) {
            for (; i + V::lanes <= n; i += V::lanes) V::store(to + i, V::load(from + i));
        }
    }
    for (; i < n; ++i) to[i] = static_cast<T>(widen(from[i * stride]));
}

template <class T, class S>
void write_row(const T *from, Index n, S *to, Index stride) {
    using V = Simd<T>;
    Index i = 0;
    if constexpr (sizeof(S) <= sizeof(T)) {
        if (stride == 1) {
            for (; i + V::lanes <= n; i += V::lanes) V::store(to + i, V::load(from + i));
        }
    }
    for (; i < n; ++i) to[i * stride] = narrow<S>(from[i]);
}

// Calls function(S{}) with the storage types that T computes with.
template <class T, class Function>
void with_storage(DType dtype, const Function &function) {
    if constexpr (sizeof(T) == sizeof(double)) {
        function(double{});
    } else if (dtype == DType::float16) {
        function(Half{});
    } else if (dtype == DType::bfloat16) {
        function(BFloat{});
    } else {
        function(float{});
    }
}

// from: `width` columns of vectors over n rows, ldf apart; to: the transpose, ldt apart.
// Both have room up to the next multiple of a vector.
template <class T>
void transpose(const T *from, Index ldf, Index n, int vectors, T *to, Index ldt) {
    using V = Simd<T>;
    typename V::reg block[V::lanes];
    for (Index i = 0; i < n; i += V::lanes) {
        for (int c = 0; c < vectors; ++c) {
            for (int k = 0; k < V::lanes; ++k) block[k] = V::load(from + (i + k) * ldf + c * V::lanes);
            V::transpose(block);
            for (int k = 0; k < V::lanes; ++k) V::store(to + (c * V::lanes + k) * ldt + i, block[k]);
        }
    }
}

}  // namespace regard::REGARD_ISA
