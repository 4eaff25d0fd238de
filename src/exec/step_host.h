// What the parts of a program that are on GPUs, or on other ranks, need of it.
#pragma once

#include <functional>
#include <vector>

#include "exec/kernel.h"
#include "exec/runtime.h"
#include "exec/step_plan.h"

namespace emplace::exec {

class StepHost {
 public:
  virtual ~StepHost() = default;

  virtual const Graph& graph() const = 0;
  virtual const StepPlan& plan() const = 0;
  // What a tensor is executed in.
  virtual torch::ScalarType type_of(TensorId tensor) const = 0;
  virtual std::int64_t step_number() const = 0;
  // By copy; what ops make is put there, and taken away after the last use.
  virtual std::vector<Tensor>& values() = 0;
  // Launches the op. `clock`: as in OpStep.
  virtual void execute(OpId op, const Clock& clock) = 0;
  virtual bool stopped() const = 0;
  // Until what the op needs of other devices has been sent; no: the step ends.
  virtual bool wait_for(OpId op) = 0;
  virtual void send(TransferId transfer) = 0;
  // A tensor has come: its readers wait for one thing less.
  virtual void arrived(CopyId copy) = 0;
  // Tells ops on other devices that come after it.
  virtual void followed(OpId op) = 0;
  // Of an op elsewhere: those here that come after it wait for one thing less.
  virtual void preceded(OpId op) = 0;
  virtual void set_time(OpId op, const Interval& time) = 0;
  // How much more memory was held while it ran, its results included.
  virtual void set_temporary(OpId op, Bytes held) = 0;
  // Runs the body; what it throws ends the step, and is said of the op.
  virtual void guard(OpId op, const std::function<void()>& body) = 0;
  // The same of a tensor on its way.
  virtual void guard_transfer(TransferId transfer, const std::function<void()>& body) = 0;
  // Ends the step here; says whether this is why.
  virtual bool give_up(Failure failure) = 0;
};

}  // namespace emplace::exec
