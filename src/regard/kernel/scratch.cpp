#include "scratch.hpp"

#include <cassert>
#include <cstdlib>
#include <new>

namespace regard {

Memory::Memory(Index bytes) { resize(bytes); }

Memory::~Memory() { std::free(start_); }

void Memory::resize(Index bytes) {
    constexpr Index line = 64;
    if (bytes <= bytes_) return;
    std::free(start_);
    bytes_ = 0;
    const Index whole = (bytes + line - 1) / line * line;
    start_ = std::aligned_alloc(line, static_cast<std::size_t>(whole));
    if (!start_) throw std::bad_alloc();
    bytes_ = whole;
}

Scratch &Scratch::of_thread() {
    thread_local Scratch scratch;
    scratch.taken_ = 0;
    return scratch;
}

void *Scratch::take_bytes(Index bytes) {
    assert(taken_ < MOST);
    Memory &buffer = buffers_[taken_++];
    buffer.resize(bytes > 0 ? bytes : 1);
    return buffer.as<void>();
}

}  // namespace regard
