// Vectors of 512 bits.
#pragma once

#include <immintrin.h>

#include "problem.hpp"

namespace regard::REGARD_ISA {

template <class T>
struct Simd;

template <>
struct Simd<float> {
    using reg = __m512;
    static constexpr int lanes = 16, tile_vectors = 4;
    static constexpr int tile_rows[] = {8, 8, 8, 6};  // by the number of vectors

    static reg zero() { return _mm512_setzero_ps(); }
    static reg set(float x) { return _mm512_set1_ps(x); }
    static reg load(const float *p) { return _mm512_loadu_ps(p); }
    static reg load(const Half *p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)));
    }
    static reg load(const BFloat *p) {
        const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
    }
    static void store(float *p, reg x) { _mm512_storeu_ps(p, x); }
    static void store(Half *p, reg x) {
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), _mm512_cvtps_ph(x, 0));
    }
    static void store(BFloat *p, reg x) {  // to nearest, ties to even; NaN stays quiet
        const __m512i bits = _mm512_castps_si512(x);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        __m512i near = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
        near = _mm512_mask_or_epi32(near, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits,
                                    _mm512_set1_epi32(0x400000));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(p),
                            _mm512_cvtepi32_epi16(_mm512_srli_epi32(near, 16)));
    }

    static reg add(reg a, reg b) { return _mm512_add_ps(a, b); }
    static reg sub(reg a, reg b) { return _mm512_sub_ps(a, b); }
    static reg mul(reg a, reg b) { return _mm512_mul_ps(a, b); }
    static reg div(reg a, reg b) { return _mm512_div_ps(a, b); }
    static reg fma(reg a, reg b, reg c) { return _mm512_fmadd_ps(a, b, c); }
    static reg max(reg a, reg b) { return _mm512_max_ps(a, b); }  // b if either is NaN
    static reg abs(reg a) { return _mm512_abs_ps(a); }
    static reg round(reg a) { return _mm512_roundscale_ps(a, 8); }
    // p · 2ⁿ for n = round(x); 0 for x = −∞, whatever p is
    static reg scale(reg p, reg n, reg) { return _mm512_scalef_ps(p, n); }
    // x where a < b, otherwise y
    static reg less(reg a, reg b, reg x, reg y) {
        return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
    }
    static std::uint32_t less_bits(reg a, reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
    // x in the lanes whose bit is set, y in the others
    static reg choose(std::uint32_t bits, reg x, reg y) {
        return _mm512_mask_blend_ps(static_cast<__mmask16>(bits), y, x);
    }
    static float sum(reg a) { return _mm512_reduce_add_ps(a); }

    static void transpose(reg r[16]) {
        reg t[16];
        for (int i = 0; i < 16; i += 2) {
            t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
            t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
        }
        for (int i = 0; i < 16; i += 4) {
            for (int j = 0; j < 2; ++j) {
                const __m512d low = _mm512_castps_pd(t[i + j]);
                const __m512d high = _mm512_castps_pd(t[i + j + 2]);
                r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
                r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
            }
        }
        for (int j = 0; j < 4; ++j) {
            t[j] = _mm512_shuffle_f32x4(r[j], r[j + 4], 0x88);
            t[j + 4] = _mm512_shuffle_f32x4(r[j], r[j + 4], 0xdd);
            t[j + 8] = _mm512_shuffle_f32x4(r[j + 8], r[j + 12], 0x88);
            t[j + 12] = _mm512_shuffle_f32x4(r[j + 8], r[j + 12], 0xdd);
        }
        for (int j = 0; j < 4; ++j) {
            r[j] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0x88);
            r[j + 8] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0xdd);
            r[j + 4] = _mm512_shuffle_f32x4(t[j + 4], t[j + 12], 0x88);
            r[j + 12] = _mm512_shuffle_f32x4(t[j + 4], t[j + 12], 0xdd);
        }
    }
};

template <>
struct Simd<double> {
    using reg = __m512d;
    static constexpr int lanes = 8, tile_vectors = 4;
    static constexpr int tile_rows[] = {8, 8, 8, 6};

    static reg zero() { return _mm512_setzero_pd(); }
    static reg set(double x) { return _mm512_set1_pd(x); }
    static reg load(const double *p) { return _mm512_loadu_pd(p); }
    static void store(double *p, reg x) { _mm512_storeu_pd(p, x); }

    static reg add(reg a, reg b) { return _mm512_add_pd(a, b); }
    static reg sub(reg a, reg b) { return _mm512_sub_pd(a, b); }
    static reg mul(reg a, reg b) { return _mm512_mul_pd(a, b); }
    static reg div(reg a, reg b) { return _mm512_div_pd(a, b); }
    static reg fma(reg a, reg b, reg c) { return _mm512_fmadd_pd(a, b, c); }
    static reg max(reg a, reg b) { return _mm512_max_pd(a, b); }
    static reg abs(reg a) { return _mm512_abs_pd(a); }
    static reg round(reg a) { return _mm512_roundscale_pd(a, 8); }
    static reg scale(reg p, reg n, reg) { return _mm512_scalef_pd(p, n); }
    static reg less(reg a, reg b, reg x, reg y) {
        return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), y, x);
    }
    static std::uint32_t less_bits(reg a, reg b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
    static reg choose(std::uint32_t bits, reg x, reg y) {
        return _mm512_mask_blend_pd(static_cast<__mmask8>(bits), y, x);
    }
    static double sum(reg a) { return _mm512_reduce_add_pd(a); }

    static void transpose(reg r[8]) {
        reg t[8];
        for (int i = 0; i < 8; i += 2) {
            t[i] = _mm512_unpacklo_pd(r[i], r[i + 1]);
            t[i + 1] = _mm512_unpackhi_pd(r[i], r[i + 1]);
        }
        for (int j = 0; j < 2; ++j) {
            r[j] = _mm512_shuffle_f64x2(t[j], t[j + 2], 0x88);
            r[j + 2] = _mm512_shuffle_f64x2(t[j], t[j + 2], 0xdd);
            r[j + 4] = _mm512_shuffle_f64x2(t[j + 4], t[j + 6], 0x88);
            r[j + 6] = _mm512_shuffle_f64x2(t[j + 4], t[j + 6], 0xdd);
        }
        for (int j = 0; j < 2; ++j) {
            t[j] = _mm512_shuffle_f64x2(r[j], r[j + 4], 0x88);
            t[j + 4] = _mm512_shuffle_f64x2(r[j], r[j + 4], 0xdd);
            t[j + 2] = _mm512_shuffle_f64x2(r[j + 2], r[j + 6], 0x88);
            t[j + 6] = _mm512_shuffle_f64x2(r[j + 2], r[j + 6], 0xdd);
        }
        for (int j = 0; j < 8; ++j) r[j] = t[j];
    }
};

// Bit j is set where byte j is not 0.
inline std::uint64_t bits_of_64_bytes(const char *bytes) {
    const __m512i all = _mm512_loadu_si512(bytes);
    return _mm512_test_epi8_mask(all, all);
}

}  // namespace regard::REGARD_ISA
