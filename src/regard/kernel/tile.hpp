// Products of small matrices, the sums kept in registers.
#pragma once

#include "problem.hpp"

#if defined(__clang__)
#define REGARD_UNROLL _Pragma("clang loop unroll_count(4)")
#define REGARD_UNROLL_ALL _Pragma("clang loop unroll(full)")
#else
#define REGARD_UNROLL _Pragma("GCC unroll 4")
#define REGARD_UNROLL_ALL _Pragma("GCC unroll 16")
#endif

namespace regard::REGARD_ISA {

// How the left factor lies in memory: row after row, or column after column.
enum class By { rows, columns };

template <class T, By by, int R, int N>
inline __attribute__((always_inline)) void tile(const T *a, Index lda, const T *b, Index ldb, T *c,
                                                Index ldc, Index depth, bool accumulate) {
    using V = Simd<T>;
    typename V::reg sum[R][N];
    for (int i = 0; i < R; ++i) {
        for (int j = 0; j < N; ++j) {
            sum[i][j] = V::zero();  // what was there is added last: short sums lose less
        }
    }
    REGARD_UNROLL
    for (Index k = 0; k < depth; ++k) {
        typename V::reg right[N];
        for (int j = 0; j < N; ++j) right[j] = V::load(b + k * ldb + j * V::lanes);
        for (int i = 0; i < R; ++i) {
            const auto left = V::set(by == By::rows ? a[i * lda + k] : a[k * lda + i]);
            for (int j = 0; j < N; ++j) sum[i][j] = V::fma(left, right[j], sum[i][j]);
        }
    }
    for (int i = 0; i < R; ++i) {
        for (int j = 0; j < N; ++j) {
            T *const at = c + i * ldc + j * V::lanes;
            V::store(at, accumulate ? V::add(V::load(at), sum[i][j]) : sum[i][j]);
        }
    }
}

template <class T, By by, int N>
void product_of(Index rows, const T *a, Index lda, const T *b, Index ldb, T *c, Index ldc,
                Index depth, bool accumulate) {
    constexpr int R = Simd<T>::tile_rows[N - 1];
    const Index step = by == By::rows ? lda : 1;
    Index i = 0;
    for (; i + R <= rows; i += R) {
        tile<T, by, R, N>(a + i * step, lda, b, ldb, c + i * ldc, ldc, depth, accumulate);
    }
    const auto rest = [&](auto size) {
        if (i + size > rows) return;
        tile<T, by, size, N>(a + i * step, lda, b, ldb, c + i * ldc, ldc, depth, accumulate);
        i += size;
    };
    if constexpr (R > 4) rest(std::integral_constant<int, 4>{});
    rest(std::integral_constant<int, 2>{});
    rest(std::integral_constant<int, 1>{});
}

// Calls function(integral_constant<n>) for 1 ≤ n ≤ tile_vectors.
template <class T, class Function>
inline void with_vectors(int n, const Function &function) {
    constexpr int most = Simd<T>::tile_vectors;
    if (n == 1) return function(std::integral_constant<int, 1>{});
    if constexpr (most >= 2) if (n == 2) return function(std::integral_constant<int, 2>{});
    if constexpr (most >= 3) if (n == 3) return function(std::integral_constant<int, 3>{});
    if constexpr (most >= 4) if (n == 4) return function(std::integral_constant<int, 4>{});
}

// c = a b or c += a b: a has `rows` rows of `depth` numbers, b and c have `vectors` vectors a row.
template <class T, By by>
void product(Index rows, int vectors, const T *a, Index lda, const T *b, Index ldb, T *c, Index ldc,
             Index depth, bool accumulate) {
    with_vectors<T>(vectors, [&](auto n) {
        product_of<T, by, n>(rows, a, lda, b, ldb, c, ldc, depth, accumulate);
    });
}

}  // namespace regard::REGARD_ISA
