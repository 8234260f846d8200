#define REGARD_ISA avx512
#define REGARD_NAME "avx512"

#include "simd_avx512.hpp"

#include "kernels.hpp"
