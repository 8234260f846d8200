// Reports the instruction sets that this CPU has and this operating system lets programs use.

#include "cpu.hpp"

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86)
#define REGARD_X86 1
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

namespace regard {

#if defined(REGARD_X86)

namespace {

enum Register { EAX, EBX, ECX, EDX };

struct InstructionSet {
    const char *name;  // as in Linux's /proc/cpuinfo
    std::uint32_t leaf, subleaf;
    Register reg;
    int bit;
    std::uint64_t state;  // bits of XCR0: the registers that the system must save
};

constexpr std::uint64_t AVX_STATE = 0x6;         // XMM and YMM
constexpr std::uint64_t AVX512_STATE = 0xE6;     // and opmask, ZMM
constexpr std::uint64_t AMX_STATE = 0x60000;     // tile configuration and data

constexpr InstructionSet KNOWN_SETS[] = {
    {"avx2", 7, 0, EBX, 5, AVX_STATE},
    {"fma", 1, 0, ECX, 12, AVX_STATE},
    {"f16c", 1, 0, ECX, 29, AVX_STATE},
    {"avx512f", 7, 0, EBX, 16, AVX512_STATE},
    {"avx512bw", 7, 0, EBX, 30, AVX512_STATE},
    {"avx512dq", 7, 0, EBX, 17, AVX512_STATE},
    {"avx512vl", 7, 0, EBX, 31, AVX512_STATE},
    {"avx512_bf16", 7, 1, EAX, 5, AVX512_STATE},
    {"amx_tile", 7, 0, EDX, 24, AMX_STATE},
    {"amx_bf16", 7, 0, EDX, 22, AMX_STATE},
    {"amx_int8", 7, 0, EDX, 25, AMX_STATE},
};

struct Registers {
    std::uint32_t value[4];
};

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
    Registers found{};
#if defined(_MSC_VER)
    int raw[4];
    __cpuidex(raw, static_cast<int>(leaf), static_cast<int>(subleaf));
    for (int i = 0; i < 4; ++i) found.value[i] = static_cast<std::uint32_t>(raw[i]);
#else
    __cpuid_count(leaf, subleaf, found.value[0], found.value[1], found.value[2], found.value[3]);
#endif
    return found;
}

bool has_leaf(std::uint32_t leaf, std::uint32_t subleaf) {
    if (cpuid(0, 0).value[EAX] < leaf) return false;
    return subleaf == 0 || cpuid(leaf, 0).value[EAX] >= subleaf;
}

std::uint64_t saved_state() {
    constexpr int OSXSAVE = 27;
    if (!(cpuid(1, 0).value[ECX] >> OSXSAVE & 1)) return 0;  // xgetbv would be illegal
#if defined(_MSC_VER)
    return _xgetbv(0);
#else
    std::uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return static_cast<std::uint64_t>(high) << 32 | low;
#endif
}

}  // namespace

std::vector<std::string> instruction_sets() {
    const std::uint64_t saved = saved_state();
    std::vector<std::string> found;
    for (const InstructionSet &set : KNOWN_SETS) {
        if ((saved & set.state) != set.state || !has_leaf(set.leaf, set.subleaf)) continue;
        if (cpuid(set.leaf, set.subleaf).value[set.reg] >> set.bit & 1) found.push_back(set.name);
    }
    return found;
}

#elif defined(__aarch64__) || defined(_M_ARM64)

std::vector<std::string> instruction_sets() { return {"neon"}; }  // every 64-bit Arm CPU has it

#else

std::vector<std::string> instruction_sets() { return {}; }

#endif

}  // namespace regard
