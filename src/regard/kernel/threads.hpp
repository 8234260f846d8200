// A pool of threads for independent pieces of work. One call at a time has it; a call that finds
// it busy works alone, so that several Python threads never share a core between more workers.
#pragma once

#include "problem.hpp"

namespace regard {

using Work = void (*)(void *context, Index item);

// Calls work(context, item) for every item, in any order, on up to `set_threads` threads.
void parallel(Index items, Work work, void *context);

template <class Function>
void parallel_for(Index items, const Function &function) {
    parallel(
        items, [](void *context, Index item) { (*static_cast<const Function *>(context))(item); },
        const_cast<Function *>(&function));
}

int threads();
void set_threads(int number);  // 0: as many as this process may use

// From here on as many threads work as torch uses, and they are torch's own, if they are there `to_work`
// and can be found; whether they are.
bool use_torch_threads(bool to_work);

}  // namespace regard
