// The parallel loop of the kernels. Its threads sleep until there is a loop, and a loop waits only for those that have
// begun to work on it. Those of OpenMP, in torch's own loop, spin for milliseconds after each loop, and all of them
// must pass its end: where another process wants a core, two of them are slower than one.
#pragma once
#include <torch/csrc/stable/ops.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace commodity {

class ThreadPool {
 public:
  // The threads of this process: a fork has none of its parent's. Never destroyed, as they sleep until the very end.
  static ThreadPool& of_process() {
    static std::atomic<ThreadPool*> pool{nullptr};
    ThreadPool* current = pool.load();
    while (!current || current->process_ != getpid()) {
      ThreadPool* created = new ThreadPool;
      if (pool.compare_exchange_strong(current, created)) return *created;
      delete created;
    }
    return *current;
  }

  // Calls task() in this thread and, as they wake, in up to `helpers` others; returns when all calls that have begun
  // are over. The task takes its work from a common list: when this thread finds nothing left, no other needs to begin.
  // Of two loops at once, or one inside another, the second has its own thread only: the processors are taken.
  template <typename Task>
  void run(int64_t helpers, const Task& task) {
    Loop loop{[](const void* body) { (*static_cast<const Task*>(body))(); }, &task, helpers, 0};
    if (!begin(loop)) return task();
    task();
    std::unique_lock lock(mutex_);
    loop_ = nullptr;
    done_.wait(lock, [&] { return loop.running == 0; });
  }

 private:
  struct Loop {
    void (*call)(const void*);
    const void* task;
    int64_t open, running;  // threads that may still join it, and that work on it
  };

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Loop* loop_ = nullptr;
  int64_t size_ = 0;

  bool begin(Loop& loop) {
    const std::lock_guard lock(mutex_);
    if (loop_) return false;
    try {
      for (; size_ < loop.open; ++size_) std::thread(&ThreadPool::work, this).detach();
    } catch (const std::system_error&) {  // no more threads: as many as there are
    }
    loop_ = &loop;
    for (int64_t i = 0; i < loop.open; ++i) wake_.notify_one();
    return true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return loop_ && loop_->open > 0; });
      Loop& loop = *loop_;
      --loop.open, ++loop.running;
      lock.unlock();
      loop.call(loop.task);
      lock.lock();
      if (--loop.running == 0) done_.notify_all();
    }
  }
};

// Calls body(first, last) for parts of [begin, end), at least `grain` items each, which torch's number of threads take
// one after the other. The body may throw: the calling thread throws the last of the exceptions.
template <typename Body>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const Body& body) {
  constexpr int64_t kParts = 2;  // per thread: one that is held up holds up little, and memory is faster by whole rows
  if (begin >= end) return;
  const int64_t threads =
      std::min<int64_t>(torch::stable::get_num_threads(), (end - begin + grain - 1) / std::max<int64_t>(1, grain));
  if (threads <= 1) return body(begin, end);
  const int64_t part = std::max(grain, (end - begin + kParts * threads - 1) / (kParts * threads));
  std::atomic<int64_t> next{begin};
  std::mutex mutex;
  std::exception_ptr error;
  ThreadPool::of_process().run(threads - 1, [&] {
    for (int64_t first; (first = next.fetch_add(part)) < end;) try {
        body(first, std::min(first + part, end));
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
        next = end;
      }
  });
  if (error) std::rethrow_exception(error);
}

}  // namespace commodity
