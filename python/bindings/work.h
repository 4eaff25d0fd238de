// Long work beside the interpreter: Python's other threads go on meanwhile, Ctrl-C ends it with the
// best so far, and what it tells of its progress reaches a Python function.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <set>

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
  // Calls a function with Python's lock held; what it throws ends the work, and `run` throws it.
  void call(const std::function<void()>& function);
  // For whatever fails in Python, on whichever thread: the work ends, and `run` throws it.
  void fail(std::exception_ptr error);

  // While a function of the user's runs on this thread. After Ctrl-C it has a second to notice by
  // itself that the work ends; then KeyboardInterrupt is raised in it. With Python's lock held.
  class Calling {
   public:
    explicit Calling(Work& work);
    ~Calling();
    Calling(const Calling&) = delete;
    Calling& operator=(const Calling&) = delete;

   private:
    Work& work_;
    unsigned long thread_;
  };

  // Does the work on a thread of its own. Throws what the work throws; KeyboardInterrupt where it
  // was ended by Ctrl-C before there was anything to return.
  void run(const std::function<void()>& work);
  // Whether it was ended by Ctrl-C.
  bool interrupted() const { return interrupted_; }

 private:
  void look_at_signals();
  void interrupt_calls();

  py::object progress_;
  std::atomic<bool> cancelled_{false};
  std::multiset<unsigned long> calling_;  // threads; with Python's lock held
  std::chrono::steady_clock::time_point interrupt_next_ = {};
  std::atomic<bool> interrupted_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace emplace::python
