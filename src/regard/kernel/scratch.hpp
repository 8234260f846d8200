// Memory on cache lines. What is compiled for one instruction set only may not stand inline here:
// the linker keeps one copy of an inline function, and that copy must run on every CPU.
#pragma once

#include "problem.hpp"

namespace regard {

class Memory {
  public:
    Memory() = default;
    explicit Memory(Index bytes);
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory();

    void resize(Index bytes);  // forgets what was there, unless it is large enough already

    template <class T>
    T *as() const {
        return static_cast<T *>(start_);
    }

  private:
    void *start_ = nullptr;
    Index bytes_ = 0;
};

// Buffers that a thread keeps from one piece of work to the next.
class Scratch {
  public:
    static Scratch &of_thread();  // all its buffers are free again

    template <class T>
    T *take(Index number) {
        return static_cast<T *>(take_bytes(number * static_cast<Index>(sizeof(T))));
    }

  private:
    static constexpr int MOST = 16;
    Memory buffers_[MOST];
    int taken_ = 0;

    void *take_bytes(Index bytes);
};

}  // namespace regard
