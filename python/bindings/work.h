// Long work beside the interpreter: Python's other threads go on meanwhile, Ctrl-C ends it with the
// best so far, and what it tells of its progress reaches a Python function.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>

#include "bindings.h"

namespace emplace::python {

class Work {
 public:
  // `progress` is a function of (line, seconds), or None.
  explicit Work(py::object progress) : progress_(std::move(progress)) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // To be put into a budget.
  const std::atomic<bool>* cancelled() const { return &cancelled_; }
  ProgressListener listener();
  // For whatever fails in Python, on whichever thread: the work ends, and `run` throws it.
  void fail(std::exception_ptr error);

  // Does the work on a thread of its own. Throws what the work throws.
  void run(const std::function<void()>& work);
  // Whether it was ended by Ctrl-C.
  bool interrupted() const { return interrupted_; }

 private:
  py::object progress_;
  std::atomic<bool> cancelled_{false};
  bool interrupted_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace emplace::python
