// The entry points of the instruction set that REGARD_ISA names.
#pragma once

#include <chrono>

#include "backward.hpp"
#include "forward.hpp"
#include "inspect.hpp"
#include "step.hpp"

namespace regard::REGARD_ISA {

inline double fma_gigaflops(Index rounds) {
    using V = Simd<float>;
    constexpr int chains = 12;  // hides the latency of a multiply-add
    V::reg sum[chains];
    for (auto &chain : sum) chain = V::set(1);
    const auto start = std::chrono::steady_clock::now();
    const auto factor = V::set(0.999f), term = V::set(0.001f);
    for (Index i = 0; i < rounds; ++i) {
        for (auto &chain : sum) chain = V::fma(chain, factor, term);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    float total = 0;
    for (auto &chain : sum) total += V::sum(chain);
    if (total == 0) return 0;  // the sum is used, so it is computed
    return 2e-9 * static_cast<double>(rounds * chains * V::lanes) / took.count();
}

inline double sum(const float *numbers, Index number) {
    using V = Simd<float>;
    V::reg sums[8];
    for (auto &one : sums) one = V::zero();
    Index i = 0;
    for (; i + 8 * V::lanes <= number; i += 8 * V::lanes) {
        for (int j = 0; j < 8; ++j) sums[j] = V::add(sums[j], V::load(numbers + i + j * V::lanes));
    }
    double total = 0;
    for (auto &one : sums) total += V::sum(one);
    for (; i < number; ++i) total += numbers[i];
    return total;
}

extern const Kernels kernels;
const Kernels kernels{
    REGARD_NAME,
    [](const Forward &call) {
        call.problem.dtype == DType::float64 ? forward<double>(call) : forward<float>(call);
    },
    [](const Backward &call) {
        call.problem.dtype == DType::float64 ? backward<double>(call) : backward<float>(call);
    },
    [](const Inspection &call) {
        call.problem.dtype == DType::float64 ? inspect<double>(call) : inspect<float>(call);
    },
    [](const Step &call) {
        call.dtype == DType::float64 ? step<double>(call) : step<float>(call);
    },
    fma_gigaflops,
    sum,
};

}  // namespace regard::REGARD_ISA
