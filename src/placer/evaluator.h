// What placers ask for the value of a placement. Thread-safe; counts the evaluations that a budget
// limits and remembers none of the answers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/simulator.h"

namespace emplace {

class Evaluator {
 public:
  explicit Evaluator(std::shared_ptr<const Simulator> simulator);
  explicit Evaluator(std::shared_ptr<const Problem> problem);

  const Problem& problem() const { return simulator_->problem(); }
  const Simulator& simulator() const { return *simulator_; }

  Evaluation evaluate(const Placement& placement, const ReadyOrder& order = {});
  Evaluation evaluate(const Placement& placement, const Schedule& schedule) {
    return evaluate(placement, ReadyOrder(problem(), schedule));
  }
  // The same, with each device's peak.
  Evaluation evaluate(const Placement& placement, const ReadyOrder& order,
                      std::vector<Bytes>& peaks);

  std::int64_t evaluations() const { return evaluations_.load(std::memory_order_relaxed); }

 private:
  class Lease;  // a workspace, for the length of one evaluation

  std::shared_ptr<const Simulator> simulator_;
  std::atomic<std::int64_t> evaluations_{0};
  std::mutex mutex_;
  std::vector<Simulator::WorkspacePtr> idle_;
};

}  // namespace emplace
