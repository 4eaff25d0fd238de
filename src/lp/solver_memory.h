// CLP and CBC do not survive an allocation that fails: on the way out, destructors of theirs meet
// half-made objects and crash. So where memory ends inside of a solver, it is left as it stands:
// nothing of it is destroyed, what it held is lost, and the caller gets std::bad_alloc.
#pragma once

#include <functional>

namespace emplace {

// Calls `work`. What `work` owns is lost with the solver, so it should be what only the solver
// needs; and it holds no locks. A solver that lives longer must not be used or destroyed after a
// std::bad_alloc from here.
void call_solver(const std::function<void()>& work);

// For as long as it lives, this thread is outside of the solver again: around what a solver calls
// back. No exception may pass through the solver from there.
class OutsideSolver {
 public:
  OutsideSolver();
  ~OutsideSolver();
  OutsideSolver(const OutsideSolver&) = delete;
  OutsideSolver& operator=(const OutsideSolver&) = delete;

 private:
  void* way_out_;
};

}  // namespace emplace
