#include "peaks.hpp"

#include <atomic>
#include <chrono>

#include "scratch.hpp"
#include "threads.hpp"

namespace regard {

double measure_fma(const Kernels &kernels, Index rounds) {
    std::atomic<double> total{0};
    parallel_for(threads(), [&](Index) {
        const double one = kernels.fma_gigaflops(rounds);
        for (double before = total; !total.compare_exchange_weak(before, before + one);) {}
    });
    return total;
}

double measure_memory(const Kernels &kernels, Index megabytes) {
    const Index parts = threads(), number = megabytes * 1000000 / Index{sizeof(float)} / parts;
    const Memory memory(parts * number * Index{sizeof(float)});
    float *const numbers = memory.as<float>();
    std::atomic<bool> finite{true};
    const auto each_part = [&](auto work) {
        parallel_for(parts, [&](Index part) { work(numbers + part * number); });
    };
    each_part([&](float *part) {
        for (Index i = 0; i < number; ++i) part[i] = 1;
    });
    const auto start = std::chrono::steady_clock::now();
    each_part([&](const float *part) {
        if (kernels.sum(part, number) < 0) finite = false;
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const double bytes = static_cast<double>(parts * number) * sizeof(float);
    return finite ? 1e-9 * bytes / took.count() : 0;
}

}  // namespace regard
