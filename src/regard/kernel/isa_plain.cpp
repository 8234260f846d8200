#define REGARD_ISA plain
#define REGARD_NAME "plain"

#include "simd_plain.hpp"

#include "kernels.hpp"
