// The four ways in which numbers are stored, and how each becomes a number to compute with.
#pragma once

#include <cstring>

#include "problem.hpp"

namespace regard {

inline float from_bits(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

inline std::uint32_t to_bits(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline double widen(double x) { return x; }
inline float widen(float x) { return x; }
inline float widen(BFloat x) { return from_bits(static_cast<std::uint32_t>(x.bits) << 16); }
inline float widen(Half x) {
    const std::uint32_t sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7fffu;
    if (rest >= 0x7c00u) return from_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    // Half's exponents begin 112 below float's; the product also renormalises small numbers.
    return from_bits(sign | to_bits(from_bits(rest << 13) * 0x1p112f));
}

template <class S>
S narrow(double x) {
    return static_cast<S>(x);
}

template <>
inline BFloat narrow<BFloat>(double x) {
    const float single = static_cast<float>(x);
    const std::uint32_t bits = to_bits(single);
    if (single != single) return {static_cast<std::uint16_t>(bits >> 16 | 0x40u)};
    return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

template <>
inline Half narrow<Half>(double x) {
    const float single = static_cast<float>(x);
    const std::uint32_t bits = to_bits(single), size = bits & 0x7fffffffu;
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
    if (size > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
    if (size >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // ≥ 65520
    if (size < 0x38800000u) {  // below 2⁻¹⁴: adding 0.5 rounds at the last place that Half has
        const std::uint32_t shifted = to_bits(from_bits(size) + 0.5f) - to_bits(0.5f);
        return {static_cast<std::uint16_t>(sign | shifted)};
    }
    const std::uint32_t rounded = size + 0xfffu + (size >> 13 & 1u) - 0x38000000u;
    return {static_cast<std::uint16_t>(sign | rounded >> 13)};
}

// Calls function(S{}) with the type that the numbers are stored in.
template <class Function>
void with_type(DType dtype, const Function &function) {
    switch (dtype) {
        case DType::float16: return function(Half{});
        case DType::bfloat16: return function(BFloat{});
        case DType::float32: return function(float{});
        case DType::float64: return function(double{});
    }
}

}  // namespace regard
