#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#include <pthread.h>
#define REGARD_FORKS 1
#endif

namespace regard {
namespace {

inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

int usable_cores() {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const unsigned cores = std::thread::hardware_concurrency();
    return cores ? static_cast<int>(cores) : 1;
}

// Waits for `done` without sleeping, for less than waking a thread takes, so that calls in a row find
// the threads awake and threads of others soon have the core.
template <class Done>
void wait_briefly(const Done &done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(40);
    while (!done() && std::chrono::steady_clock::now() < end) {
        for (int i = 0; i < 16; ++i) relax();
    }
}

// Keeps the threads of a call on different cores. Linux often wakes a thread on the core of who wakes
// it, where it waits until that one rests, and moves it to an idle core only milliseconds later:
// longer than most calls take. All is called under the pool's mutex.
class Cores {
  public:
#if defined(__linux__)
    // Who makes a call: sleeping helpers will not wake on its core.
    void begin() {
        CPU_ZERO(&taken_);
        take();
        if (sleeping_.empty() || sched_getaffinity(0, sizeof all_, &all_) != 0) return;
        const cpu_set_t others = not_taken();
        if (CPU_COUNT(&others) == 0) return;
        for (const pid_t thread : sleeping_) sched_setaffinity(thread, sizeof others, &others);
    }

    void sleep() { sleeping_.push_back(gettid()); }

    void wake() {
        sleeping_.erase(std::find(sleeping_.begin(), sleeping_.end(), gettid()));
        sched_setaffinity(0, sizeof all_, &all_);
    }

    // Takes the core that this thread is on; if it is taken, moves to one that is not.
    void take() {
        const int here = sched_getcpu();
        if (here < 0 || here >= CPU_SETSIZE) return;
        if (CPU_ISSET(here, &taken_)) move();
        CPU_SET(sched_getcpu(), &taken_);
    }

  private:
    cpu_set_t taken_{}, all_{};
    std::vector<pid_t> sleeping_;

    cpu_set_t not_taken() const {
        cpu_set_t both, free;
        CPU_AND(&both, &all_, &taken_);
        CPU_XOR(&free, &all_, &both);
        return free;
    }

    void move() {
        if (sched_getaffinity(0, sizeof all_, &all_) != 0) return;
        const cpu_set_t free = not_taken();
        if (CPU_COUNT(&free) == 0) return;
        sched_setaffinity(0, sizeof free, &free);
        sched_setaffinity(0, sizeof all_, &all_);  // it stays, but may be moved again
    }
#else
    void begin() {}
    void sleep() {}
    void wake() {}
    void take() {}
#endif
};

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
            cores_.begin();
        }
        wake_.notify_all();
        task.run();
        wait_briefly([this] { return busy_.load() == 0; });
        std::unique_lock lock(mutex_);
        open_ = 0;  // who has not woken by now is not needed any more
        done_.wait(lock, [this] { return busy_ == 0; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Task *task_ = nullptr;
    Cores cores_;
    std::atomic<int> open_{0}, busy_{0};  // changed under the mutex
    int helpers_ = 0;

    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            if (open_ == 0) {
                cores_.sleep();
                wake_.wait(lock, [this] { return open_ > 0; });
                cores_.wake();
            }
            --open_;
            ++busy_;
            Task *task = task_;
            cores_.take();
            lock.unlock();
            task->run();
            lock.lock();
            if (--busy_ == 0) done_.notify_one();
            lock.unlock();
            wait_briefly([this] { return open_.load() > 0; });
            lock.lock();
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

// The OpenMP library that torch has loaded. Its threads look busily for more work for a while after
// each call of torch's, and would keep ours from the cores; so they are given ours as well.
struct OpenMP {
    void (*run)(void (*work)(void *), void *context, unsigned threads, unsigned flags);
    int (*most_threads)();
};
std::atomic<const OpenMP *> openmp{nullptr};
std::atomic<bool> openmp_works{false};

}  // namespace

int threads() {
    if (const int number = chosen.load()) return number;
    const OpenMP *const of_torch = openmp.load();
    return of_torch ? of_torch->most_threads() : usable_cores();
}

bool use_torch_threads(bool to_work) {
#if defined(REGARD_FORKS)
    static const OpenMP found = [] {
        // A child has none of the threads, and the library does not know.
        pthread_atfork(nullptr, nullptr, [] { openmp_works.store(false); });
        void *const run = dlsym(RTLD_DEFAULT, "GOMP_parallel");
        void *const most = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
        return OpenMP{reinterpret_cast<decltype(OpenMP::run)>(run),
                      reinterpret_cast<decltype(OpenMP::most_threads)>(most)};
    }();
    if (found.run && found.most_threads) openmp.store(&found);
    openmp_works.store(openmp.load() && to_work);
#endif
    return openmp_works.load();
}

void set_threads(int number) { chosen.store(number); }

static void run_on(Pool &pool, Task &task, int workers) {
    if (!openmp_works.load()) return pool.run(task, workers - 1);
    openmp.load()->run([](void *given) { static_cast<Task *>(given)->run(); }, &task,
                  static_cast<unsigned>(workers), 0);
}

void parallel(Index items, Work work, void *context) {
    Task task{work, context, items};
    const Index workers = items > 1 ? std::min<Index>(threads(), items) : 1;
    if (workers > 1) {
        Pool &shared = pool();
        if (std::unique_lock ours(shared.in_use, std::try_to_lock); ours) {
            run_on(shared, task, static_cast<int>(workers));
        } else {
            task.run();
        }
    } else {
        task.run();
    }
    if (task.failure) std::rethrow_exception(task.failure);
}

}  // namespace regard
