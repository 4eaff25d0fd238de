#include "learn/nn/single_thread.h"

#include <mutex>
#include <utility>

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include "base/parallel.h"

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

// How many threads a library uses, and how to say so. Looked up by name, since libtorch may come
// with another OpenMP or BLAS than the one that this was built with, or without: then there is
// nothing to set.
struct ThreadCount {
  ThreadCount(const char* get_name, const char* set_name)
      : get(reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, get_name))),
        set(reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, set_name))) {}

  bool known() const { return get != nullptr && set != nullptr; }

  int (*get)();
  void (*set)(int);
};

const ThreadCount& openmp() {
  static const ThreadCount count("omp_get_max_threads", "omp_set_num_threads");
  return count;
}

// OpenBLAS's own threads: the first guard of the process takes them, the last gives them back.
class OpenBlas {
 public:
  void take() {
    const std::lock_guard lock(mutex_);
    if (users_++ > 0 || !count_.known()) return;
    threads_ = count_.get();
    count_.set(1);
  }
  void give_back() {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0 && count_.known()) count_.set(threads_);
  }

 private:
  std::mutex mutex_;
  int users_ = 0;
  int threads_ = 1;
  ThreadCount count_{"openblas_get_num_threads", "openblas_set_num_threads"};
};

OpenBlas& openblas() {
  static OpenBlas instance;
  return instance;
}

}  // namespace

SingleThread::SingleThread() {
  openblas().take();
  if (!openmp().known()) return;
  openmp_threads_ = openmp().get();
  // With a thread's first operation libtorch sets the thread's number to its own: now, not later.
  at::get_num_threads();
  openmp().set(1);
}

SingleThread::~SingleThread() {
  if (openmp().known()) openmp().set(openmp_threads_);
  openblas().give_back();
}

void parallel_for_tensors(std::size_t count, int threads,
                          const std::function<void(std::size_t)>& task) {
  Deadline* const deadline = Deadline::current();
  parallel_for(count, threads, [&](std::size_t i) {
    const SingleThread single_thread;
    Deadline* const own = std::exchange(Deadline::current(), deadline);
    try {
      task(i);
    } catch (...) {
      Deadline::current() = own;
      throw;
    }
    Deadline::current() = own;
  });
}

}  // namespace emplace::learn
