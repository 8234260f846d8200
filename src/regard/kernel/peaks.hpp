// What this machine can do at most, for benchmarks to compare with.
#pragma once

#include "problem.hpp"

namespace regard {

// Floating-point operations in multiply-adds, of all threads together.
double measure_fma(const Kernels &kernels, Index rounds);

// Gigabytes a second that all threads together read from an array of that many megabytes.
double measure_memory(const Kernels &kernels, Index megabytes);

}  // namespace regard
