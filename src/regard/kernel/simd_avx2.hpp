// Vectors of 256 bits.
#pragma once

#include <immintrin.h>

#include "problem.hpp"

namespace regard::REGARD_ISA {

template <class T>
struct Simd;

template <>
struct Simd<float> {
    using reg = __m256;
    static constexpr int lanes = 8, tile_vectors = 2;
    static constexpr int tile_rows[] = {8, 6};  // by the number of vectors

    static reg zero() { return _mm256_setzero_ps(); }
    static reg set(float x) { return _mm256_set1_ps(x); }
    static reg load(const float *p) { return _mm256_loadu_ps(p); }
    static reg load(const Half *p) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p)));
    }
    static reg load(const BFloat *p) {
        const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
    }
    static void store(float *p, reg x) { _mm256_storeu_ps(p, x); }
    static void store(Half *p, reg x) {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(p), _mm256_cvtps_ph(x, 0));
    }
    static void store(BFloat *p, reg x) {  // to nearest, ties to even; NaN stays quiet
        const __m256i bits = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i near = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
        const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(near, quiet, nan), 16);
        const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0xd8);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(p), _mm256_castsi256_si128(pairs));
    }

    static reg add(reg a, reg b) { return _mm256_add_ps(a, b); }
    static reg sub(reg a, reg b) { return _mm256_sub_ps(a, b); }
    static reg mul(reg a, reg b) { return _mm256_mul_ps(a, b); }
    static reg div(reg a, reg b) { return _mm256_div_ps(a, b); }
    static reg fma(reg a, reg b, reg c) { return _mm256_fmadd_ps(a, b, c); }
    static reg max(reg a, reg b) { return _mm256_max_ps(a, b); }  // b if either is NaN
    static reg abs(reg a) { return _mm256_andnot_ps(set(-0.0f), a); }
    static reg round(reg a) { return _mm256_round_ps(a, 8); }
    // p · 2ⁿ for n = round(x); 0 where x is too small for that, whatever p is
    static reg scale(reg p, reg n, reg x) {
        const reg least = set(-126), most = set(127);
        const reg within = _mm256_min_ps(_mm256_max_ps(n, least), most);
        const __m256i power = _mm256_slli_epi32(
            _mm256_add_epi32(_mm256_cvtps_epi32(within), _mm256_set1_epi32(127)), 23);
        const reg visible = _mm256_cmp_ps(x, least, _CMP_NLT_UQ);
        return _mm256_and_ps(visible, mul(p, _mm256_castsi256_ps(power)));
    }
    // x where a < b, otherwise y
    static reg less(reg a, reg b, reg x, reg y) {
        return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
    }
    static std::uint32_t less_bits(reg a, reg b) {
        return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ)));
    }
    // x in the lanes whose bit is set, y in the others
    static reg choose(std::uint32_t bits, reg x, reg y) {
        const __m256i place = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        const __m256i all = _mm256_set1_epi32(static_cast<int>(bits));
        const __m256i set = _mm256_cmpeq_epi32(_mm256_and_si256(all, place), place);
        return _mm256_blendv_ps(y, x, _mm256_castsi256_ps(set));
    }
    static float sum(reg a) {
        __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        half = _mm_add_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
    }

    static void transpose(reg r[8]) {
        reg t[8];
        for (int i = 0; i < 8; i += 2) {
            t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
        }
        for (int i = 0; i < 8; i += 4) {
            for (int j = 0; j < 2; ++j) {
                r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
                r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
            }
        }
        for (int j = 0; j < 4; ++j) {
            t[j] = _mm256_permute2f128_ps(r[j], r[j + 4], 0x20);
            t[j + 4] = _mm256_permute2f128_ps(r[j], r[j + 4], 0x31);
        }
        for (int j = 0; j < 8; ++j) r[j] = t[j];
    }
};

template <>
struct Simd<double> {
    using reg = __m256d;
    static constexpr int lanes = 4, tile_vectors = 2;
    static constexpr int tile_rows[] = {8, 6};

    static reg zero() { return _mm256_setzero_pd(); }
    static reg set(double x) { return _mm256_set1_pd(x); }
    static reg load(const double *p) { return _mm256_loadu_pd(p); }
    static void store(double *p, reg x) { _mm256_storeu_pd(p, x); }

    static reg add(reg a, reg b) { return _mm256_add_pd(a, b); }
    static reg sub(reg a, reg b) { return _mm256_sub_pd(a, b); }
    static reg mul(reg a, reg b) { return _mm256_mul_pd(a, b); }
    static reg div(reg a, reg b) { return _mm256_div_pd(a, b); }
    static reg fma(reg a, reg b, reg c) { return _mm256_fmadd_pd(a, b, c); }
    static reg max(reg a, reg b) { return _mm256_max_pd(a, b); }
    static reg abs(reg a) { return _mm256_andnot_pd(set(-0.0), a); }
    static reg round(reg a) { return _mm256_round_pd(a, 8); }
    static reg scale(reg p, reg n, reg x) {
        const reg least = set(-1022), most = set(1023);
        const reg within = _mm256_min_pd(_mm256_max_pd(n, least), most);
        const __m256i power = _mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(within));
        const __m256i bits = _mm256_slli_epi64(_mm256_add_epi64(power, _mm256_set1_epi64x(1023)), 52);
        const reg visible = _mm256_cmp_pd(x, least, _CMP_NLT_UQ);
        return _mm256_and_pd(visible, mul(p, _mm256_castsi256_pd(bits)));
    }
    static reg less(reg a, reg b, reg x, reg y) {
        return _mm256_blendv_pd(y, x, _mm256_cmp_pd(a, b, _CMP_LT_OQ));
    }
    static std::uint32_t less_bits(reg a, reg b) {
        return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ)));
    }
    static reg choose(std::uint32_t bits, reg x, reg y) {
        const __m256i place = _mm256_setr_epi64x(1, 2, 4, 8);
        const __m256i all = _mm256_set1_epi64x(bits);
        const __m256i set = _mm256_cmpeq_epi64(_mm256_and_si256(all, place), place);
        return _mm256_blendv_pd(y, x, _mm256_castsi256_pd(set));
    }
    static double sum(reg a) {
        const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
        return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
    }

    static void transpose(reg r[4]) {
        reg t[4];
        for (int i = 0; i < 4; i += 2) {
            t[i] = _mm256_unpacklo_pd(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_pd(r[i], r[i + 1]);
        }
        for (int j = 0; j < 2; ++j) {
            r[j] = _mm256_permute2f128_pd(t[j], t[j + 2], 0x20);
            r[j + 2] = _mm256_permute2f128_pd(t[j], t[j + 2], 0x31);
        }
    }
};

// Bit j is set where byte j is not 0.
inline std::uint64_t bits_of_64_bytes(const char *bytes) {
    std::uint64_t zeros = 0;
    for (int i = 0; i < 64; i += 32) {
        const __m256i part = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(bytes + i));
        const int equal = _mm256_movemask_epi8(_mm256_cmpeq_epi8(part, _mm256_setzero_si256()));
        zeros |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(equal)) << i;
    }
    return ~zeros;
}

}  // namespace regard::REGARD_ISA
