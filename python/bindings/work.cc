#include "work.h"

#include <chrono>
#include <condition_variable>
#include <thread>

namespace emplace::python {
namespace {

constexpr std::chrono::seconds kPatience{1};

// Ends a thread before anything that it uses is gone.
class Joined {
 public:
  explicit Joined(std::function<void()> work) : thread_(std::move(work)) {}
  ~Joined() {
    const py::gil_scoped_release release;
    thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace

ProgressListener Work::listener() {
  if (progress_.is_none()) return {};
  return [this](const Progress& progress) {
    if (cancelled_) return;
    call([&] { progress_(progress.line, progress.seconds); });
  };
}

void Work::call(const std::function<void()>& function) {
  const py::gil_scoped_acquire acquire;
  try {
    function();
  } catch (...) {
    fail(std::current_exception());
  }
}

void Work::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
  cancelled_ = true;
}

Work::Calling::Calling(Work& work) : work_(work), thread_(PyThread_get_thread_ident()) {
  work_.calling_.insert(thread_);
}

Work::Calling::~Calling() {
  work_.calling_.erase(work_.calling_.find(thread_));
}

void Work::look_at_signals() {
  if (PyErr_CheckSignals() == 0) return;
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
    PyErr_Clear();
    if (!interrupted_) interrupt_next_ = std::chrono::steady_clock::now() + kPatience;
    cancelled_ = interrupted_ = true;
  } else {
    fail(std::make_exception_ptr(py::error_already_set()));
  }
}

void Work::interrupt_calls() {
  if (!interrupted_ || std::chrono::steady_clock::now() < interrupt_next_) return;
  interrupt_next_ = std::chrono::steady_clock::now() + kPatience;
  for (const unsigned long thread : calling_) {
    PyThreadState_SetAsyncExc(thread, PyExc_KeyboardInterrupt);
  }
}

void Work::run(const std::function<void()>& work) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr error;
  {
    const Joined thread([&] {
      try {
        work();
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      done = true;
      changed.notify_one();
    });
    // Signals are looked at here, by Python's main thread; on others that does nothing.
    for (bool ended = false; !ended;) {
      {
        const py::gil_scoped_release release;
        std::unique_lock lock(mutex);
        ended = changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return done; });
      }
      look_at_signals();
      if (!ended) interrupt_calls();
    }
  }
  if (failure_) std::rethrow_exception(failure_);
  if (!error) return;
  if (interrupted_) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw py::error_already_set();
  }
  std::rethrow_exception(error);
}

}  // namespace emplace::python
