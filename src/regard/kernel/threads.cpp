#include "threads.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define REGARD_FORKS 1
#endif

namespace regard {
namespace {

int usable_cores() {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const unsigned cores = std::thread::hardware_concurrency();
    return cores ? static_cast<int>(cores) : 1;
}

// One call's work: threads take the next item until none is left.
struct Task {
    Work work;
    void *context;
    Index items;
    std::atomic<Index> next{0};
    std::exception_ptr failure = nullptr;
    std::atomic_flag failed = ATOMIC_FLAG_INIT;

    void run() {
        try {
            for (Index item; (item = next.fetch_add(1)) < items;) work(context, item);
        } catch (...) {
            next.store(items);
            if (!failed.test_and_set()) failure = std::current_exception();
        }
    }
};

class Pool {
  public:
    std::mutex in_use;

    void run(Task &task, int helpers) {
        for (; helpers_ < helpers; ++helpers_) std::thread([this] { serve(); }).detach();
        {
            std::lock_guard lock(mutex_);
            task_ = &task;
            open_ = helpers;
        }
        wake_.notify_all();
        task.run();
        std::unique_lock lock(mutex_);
        open_ = 0;  // who has not woken by now is not needed any more
        done_.wait(lock, [this] { return busy_ == 0; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Task *task_ = nullptr;
    int open_ = 0, busy_ = 0, helpers_ = 0;

    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [this] { return open_ > 0; });
            --open_;
            ++busy_;
            Task *task = task_;
            lock.unlock();
            task->run();
            lock.lock();
            if (--busy_ == 0) done_.notify_one();
        }
    }
};

// Never destroyed: its threads may outlive the statics. A forked child, which has none of these
// threads, makes a pool of its own.
std::atomic<Pool *> current{nullptr};
std::atomic<int> chosen{0};

Pool &pool() {
    static const bool prepared = [] {
#if defined(REGARD_FORKS)
        pthread_atfork(nullptr, nullptr, [] { current.store(new Pool); });
#endif
        current.store(new Pool);
        return true;
    }();
    static_cast<void>(prepared);
    return *current.load();
}

}  // namespace

int threads() {
    const int number = chosen.load();
    return number ? number : usable_cores();
}

void set_threads(int number) { chosen.store(number); }

void parallel(Index items, Work work, void *context) {
    Task task{work, context, items};
    const Index workers = threads() < items ? threads() : items;
    if (workers > 1) {
        Pool &shared = pool();
        if (std::unique_lock ours(shared.in_use, std::try_to_lock); ours) {
            shared.run(task, static_cast<int>(workers) - 1);
        } else {
            task.run();
        }
    } else {
        task.run();
    }
    if (task.failure) std::rethrow_exception(task.failure);
}

}  // namespace regard
