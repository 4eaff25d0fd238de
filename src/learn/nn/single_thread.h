// Tensor operations on one thread each: threads are for shards of samples and for evaluations, and
// sums must not depend on how many there are.
#pragma once

#include <cstddef>
#include <functional>

namespace emplace::learn {

// While it lives, tensor operations of this thread use no other. Then numbers of threads are as
// they were, for whoever has libtorch or OpenBLAS for purposes of their own. OpenMP's number, which
// libtorch goes by, belongs to a thread; OpenBLAS has one for the whole process, which is 1 as long
// as any of these lives.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int openmp_threads_ = 1;  // of this thread, before
};

// parallel_for (base/parallel.h) for tasks with tensor operations, each of which has one thread.
void parallel_for_tensors(std::size_t count, int threads,
                          const std::function<void(std::size_t)>& task);

}  // namespace emplace::learn
