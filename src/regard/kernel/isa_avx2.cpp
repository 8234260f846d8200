#define REGARD_ISA avx2
#define REGARD_NAME "avx2"

#include "simd_avx2.hpp"

#include "kernels.hpp"
