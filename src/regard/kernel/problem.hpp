// What a kernel is asked to compute: pointers, strides and options, already validated in Python.
#pragma once

#include <cstdint>

namespace regard {

using Index = std::int64_t;

enum class DType { float16, bfloat16, float32, float64 };

struct Half {
    std::uint16_t bits;
};

struct BFloat {
    std::uint16_t bits;
};

// An array with four axes; strides count elements, and are 0 along axes that are broadcast.
struct Array {
    char *data = nullptr;
    Index strides[4] = {0, 0, 0, 0};

    explicit operator bool() const { return data != nullptr; }

    template <class S>
    S *at(Index i, Index j, Index k = 0) const {
        return reinterpret_cast<S *>(data) + i * strides[0] + j * strides[1] + k * strides[2];
    }
};

struct Problem {
    DType dtype = DType::float32;
    Index batch = 0, heads = 0, kv_heads = 0, n_q = 0, n_past = 0, n_k = 0, d_k = 0, d_v = 0;
    Array q, k, v, past_k, past_v;      // (batch, heads, tokens, dim); n_k counts the past as well
    Array mask, bias;                   // (batch, heads, n_q, n_k): bytes; the computing type
    Array q_segments, k_segments;       // (batch, tokens): int64
    const Index *lengths = nullptr;     // (batch): how many keys are live
    const Index *prefix = nullptr;      // (batch): keys that every query sees
    const Index *offsets = nullptr;     // (batch): query i stands at key i + offset
    const void *sinks = nullptr;        // (heads), in the computing type
    bool causal = false;
    Index left = -1, right = -1;        // the window on both sides; -1 is unbounded
    double scale = 1, softcap = 0;      // softcap 0: none

    Index group() const { return kv_heads ? heads / kv_heads : 0; }
};

struct Forward {
    Problem problem;
    Array out;            // (batch, heads, n_q, d_v)
    void *lse = nullptr;  // (batch, heads, n_q) in the computing type, or nothing
};

struct Backward {
    Problem problem;
    Array out, d_out;
    const void *lse = nullptr;
    Array d_q, d_k, d_v;
    Array d_bias;  // (batch, heads, n_q, n_k) in the computing type, or nothing
};

struct Inspection {
    Problem problem;
    const void *lse = nullptr;
    Index top = 0;
    void *top_weights = nullptr;  // (batch, heads, n_q, top)
    Index *top_keys = nullptr;
    void *entropy = nullptr;      // (batch, heads, n_q)
    void *received = nullptr;     // (batch, heads, n_k)
    Index n_rows = 0;
    const Index *row_places = nullptr;
    void *rows = nullptr;  // (batch, heads, n_rows, n_k)
};

// One more token of every hypothesis of a batch entry, which are all remembered at once.
struct Step {
    DType dtype = DType::float32;  // of everything but the turns
    Index batch = 0, tokens = 0, heads = 0, kv_heads = 0, dim = 0;
    Index filled = 0;             // places of the cache that hold something already
    double scale = 1;
    const void *wide = nullptr;   // (batch, tokens, heads + 2 kv_heads, dim): queries, keys, values
    const void *turns = nullptr;  // cosines and sines (2, batch, tokens, dim), or nothing
    Array keys, values;           // (batch, kv_heads, places, dim)
    Array seen;                   // (batch, tokens, places): bytes
    void *out = nullptr;          // (batch, tokens, heads, dim)
};

// The entry points of one instruction set.
struct Kernels {
    const char *name;
    void (*forward)(const Forward &);
    void (*backward)(const Backward &);
    void (*inspect)(const Inspection &);
    void (*step)(const Step &);
    double (*fma_gigaflops)(Index rounds);            // what one core reaches with multiply-adds
    double (*sum)(const float *numbers, Index number);  // reads memory as fast as it can
};

}  // namespace regard
