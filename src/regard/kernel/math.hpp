// Exponential and hyperbolic tangent of vectors. The polynomials have the smallest relative error
// that their degree allows on their interval.
#pragma once

#include <cmath>

#include "problem.hpp"

namespace regard::REGARD_ISA {

constexpr double LOG2_E = 1.4426950408889634, LN_2 = 0.6931471805599453;

template <class T>
struct Polynomials;

template <>
struct Polynomials<float> {
    // 2ʳ = 1 + r p(r) for |r| ≤ ½, within 2.0e-9
    static constexpr float exp2[] = {0.693147202854982584f,   0.240226479136186941f,
                                     0.0555033247125718653f,  0.00961843735843882003f,
                                     0.00133988743782349481f, 0.000153533617863943913f};
    // tanh x = x + x³ p(x²) for |x| ≤ 0.625, within 4.1e-9
    static constexpr float tanh[] = {-0.333332839253478233f, 0.133314912886592455f,
                                     -0.0537434982111572939f, 0.0206505876963420943f,
                                     -0.00571704547795244442f};
    static constexpr float tanh_limit = 0.625f;
};

template <>
struct Polynomials<double> {
    // within 4.2e-20
    static constexpr double exp2[] = {0.693147180559945309,    0.240226506959100715,
                                      0.0555041086648216871,   0.00961812910762832956,
                                      0.0013333558146392691,   0.000154035303936407355,
                                      0.000015252733854318075, 1.32154865948999615e-6,
                                      1.0178051942061472e-7,   7.05497448279336731e-9,
                                      4.45657049284045631e-10, 2.56254146120181382e-11};
    // for |x| ≤ ½, within 6.3e-20
    static constexpr double tanh[] = {-0.333333333333333287,   0.133333333333322403,
                                      -0.05396825396736534,    0.021869488500091112,
                                      -0.00886323467815815179, 0.00359211535586896036,
                                      -0.00145571021975806717, 0.00058921359827703707,
                                      -0.00023557216397853095, 0.0000868391957197979259,
                                      -0.0000219403464386721681};
    static constexpr double tanh_limit = 0.5;
};

template <class T, std::size_t n>
inline typename Simd<T>::reg horner(const T (&coefficients)[n], typename Simd<T>::reg x) {
    auto p = Simd<T>::set(coefficients[n - 1]);
    for (std::size_t i = n - 1; i-- > 0;) p = Simd<T>::fma(p, x, Simd<T>::set(coefficients[i]));
    return p;
}

template <class T>
inline typename Simd<T>::reg exp2(typename Simd<T>::reg x) {
    using V = Simd<T>;
    const auto n = V::round(x), r = V::sub(x, n);
    return V::scale(V::fma(horner(Polynomials<T>::exp2, r), r, V::set(1)), n, x);
}

template <class T>
inline typename Simd<T>::reg tanh(typename Simd<T>::reg x) {
    using V = Simd<T>;
    const auto square = V::mul(x, x);
    const auto near = V::fma(V::mul(horner(Polynomials<T>::tanh, square), square), x, x);
    const auto most = V::set(20);  // tanh is 1 from here on
    const auto e = exp2<T>(V::mul(V::less(most, x, most, x), V::set(static_cast<T>(2 * LOG2_E))));
    const auto far = V::sub(V::set(1), V::div(V::set(2), V::add(e, V::set(1))));
    return V::less(V::abs(x), V::set(Polynomials<T>::tanh_limit), near, far);
}

}  // namespace regard::REGARD_ISA
