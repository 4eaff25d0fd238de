#include "lp/solver_memory.h"

#include <csetjmp>
#include <mutex>
#include <new>
#include <utility>

namespace emplace {
namespace {

// Of the solver that this thread is in.
thread_local std::jmp_buf* way_out = nullptr;

// The process's handler is ours while any thread is in a solver.
struct Installed {
  std::mutex mutex;
  int users = 0;
  std::new_handler before = nullptr;
};
Installed installed;

void on_no_memory() {
  if (way_out != nullptr) std::longjmp(*way_out, 1);
  // Another thread, which is in no solver.
  std::new_handler before = nullptr;
  {
    const std::lock_guard lock(installed.mutex);
    before = installed.before;
  }
  if (before == nullptr) throw std::bad_alloc();
  before();
}

class Installation {
 public:
  Installation() {
    const std::lock_guard lock(installed.mutex);
    if (installed.users++ == 0) installed.before = std::set_new_handler(on_no_memory);
  }
  ~Installation() {
    const std::lock_guard lock(installed.mutex);
    if (--installed.users == 0) std::set_new_handler(std::exchange(installed.before, nullptr));
  }
  Installation(const Installation&) = delete;
  Installation& operator=(const Installation&) = delete;
};

// Whether it came to an end.
bool has_ended(const std::function<void()>& work, std::jmp_buf* outer) {
  std::jmp_buf here;
  if (setjmp(here) != 0) return false;
  way_out = &here;
  try {
    work();
  } catch (...) {
    way_out = outer;
    throw;
  }
  return true;
}

}  // namespace

void call_solver(const std::function<void()>& work) {
  const Installation installation;
  std::jmp_buf* const outer = way_out;
  const bool ended = has_ended(work, outer);
  way_out = outer;
  if (!ended) throw std::bad_alloc();
}

OutsideSolver::OutsideSolver() : way_out_(std::exchange(way_out, nullptr)) {}

OutsideSolver::~OutsideSolver() {
  way_out = static_cast<std::jmp_buf*>(way_out_);
}

}  // namespace emplace
