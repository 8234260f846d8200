// Vectors of 128 bits, in what GCC and Clang offer on every CPU.
#pragma once

#include <limits>
#include <type_traits>

#include "storage.hpp"

namespace regard::REGARD_ISA {

template <class T>
struct Simd {
    typedef T reg __attribute__((vector_size(16)));
    using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    typedef Integer Integers __attribute__((vector_size(16)));

    static constexpr int lanes = 16 / sizeof(T), tile_vectors = 2;
    static constexpr int tile_rows[] = {6, 4};  // by the number of vectors
    static constexpr int mantissa = std::numeric_limits<T>::digits - 1;
    static constexpr Integer exponent = std::numeric_limits<T>::max_exponent - 1;

    static reg zero() { return reg{}; }
    static reg set(T x) { return x - reg{}; }
    template <class S>
    static reg load(const S *p) {
        reg x;
        for (int i = 0; i < lanes; ++i) x[i] = static_cast<T>(widen(p[i]));
        return x;
    }
    static reg load(const T *p) {
        reg x;
        std::memcpy(&x, p, sizeof x);
        return x;
    }
    template <class S>
    static void store(S *p, reg x) {
        for (int i = 0; i < lanes; ++i) p[i] = narrow<S>(x[i]);
    }
    static void store(T *p, reg x) { std::memcpy(p, &x, sizeof x); }

    static reg add(reg a, reg b) { return a + b; }
    static reg sub(reg a, reg b) { return a - b; }
    static reg mul(reg a, reg b) { return a * b; }
    static reg div(reg a, reg b) { return a / b; }
    static reg fma(reg a, reg b, reg c) { return a * b + c; }
    static reg max(reg a, reg b) { return a > b ? a : b; }  // b if either is NaN
    static reg abs(reg a) { return a < 0 ? -a : a; }
    static reg round(reg a) {  // right below 2^(mantissa − 1), and beyond that scale gives 0
        const T magic = static_cast<T>(3) * static_cast<T>(Integer{1} << (mantissa - 1));
        return (a + magic) - magic;
    }
    // p · 2ⁿ for n = round(x); 0 where x is too small for that, whatever p is
    static reg scale(reg p, reg n, reg x) {
        const reg least = set(1 - exponent), most = set(exponent);
        reg within = n > least ? n : least;
        within = within < most ? within : most;
        const Integers power = (__builtin_convertvector(within, Integers) + exponent) << mantissa;
        const reg scaled = p * reinterpret_cast<reg>(power);
        return x < least ? zero() : scaled;
    }
    // x where a < b, otherwise y
    static reg less(reg a, reg b, reg x, reg y) { return a < b ? x : y; }
    static std::uint32_t less_bits(reg a, reg b) {
        std::uint32_t bits = 0;
        for (int i = 0; i < lanes; ++i) bits |= static_cast<std::uint32_t>(a[i] < b[i]) << i;
        return bits;
    }
    // x in the lanes whose bit is set, y in the others
    static reg choose(std::uint32_t bits, reg x, reg y) {
        for (int i = 0; i < lanes; ++i) {
            if (bits >> i & 1) y[i] = x[i];
        }
        return y;
    }
    static T sum(reg a) {
        T total = 0;
        for (int i = 0; i < lanes; ++i) total += a[i];
        return total;
    }
    static void transpose(reg r[lanes]) {
        for (int i = 0; i < lanes; ++i) {
            for (int j = i + 1; j < lanes; ++j) {
                const T above = r[i][j];
                r[i][j] = r[j][i];
                r[j][i] = above;
            }
        }
    }
};

// Bit j is set where byte j is not 0.
inline std::uint64_t bits_of_64_bytes(const char *bytes) {
    std::uint64_t bits = 0;
    for (int i = 0; i < 64; i += 8) {
        constexpr std::uint64_t low = 0x7f7f7f7f7f7f7f7fu;
        std::uint64_t word;
        std::memcpy(&word, bytes + i, sizeof word);
        const std::uint64_t set = ((((word & low) + low) | word) & ~low) >> 7;  // 1 in each such byte
        bits |= (set * 0x0102040810204080u >> 56) << i;
    }
    return bits;
}

}  // namespace regard::REGARD_ISA
