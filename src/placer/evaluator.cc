#include "placer/evaluator.h"

#include <algorithm>

#include "sim/throughput.h"

namespace emplace {

class Evaluator::Lease {
 public:
  explicit Lease(Evaluator& owner) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.idle_.empty()) {
      workspace_ = owner_.simulator_->make_workspace();
    } else {
      workspace_ = std::move(owner_.idle_.back());
      owner_.idle_.pop_back();
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(workspace_));
  }

  Simulator::Workspace& workspace() { return *workspace_; }

 private:
  Evaluator& owner_;
  Simulator::WorkspacePtr workspace_;
};

Evaluator::Evaluator(std::shared_ptr<const Simulator> simulator, Objective objective)
    : simulator_(std::move(simulator)), objective_(objective) {}

Evaluator::Evaluator(std::shared_ptr<const Problem> problem, Objective objective)
    : Evaluator(std::make_shared<const Simulator>(std::move(problem)), objective) {}

Evaluation Evaluator::evaluate(const Placement& placement, const ReadyOrder& order) {
  count(1);
  return value_of(placement, order, nullptr);
}

Evaluation Evaluator::evaluate(const Placement& placement, const ReadyOrder& order,
                               std::vector<Bytes>& peaks) {
  count(1);
  return value_of(placement, order, &peaks);
}

Evaluation Evaluator::evaluate_with_starts(const Placement& placement,
                                           std::vector<Nanoseconds>& starts) {
  count(1);
  Lease lease(*this);
  starts.resize(problem().num_ops());
  const Evaluation step =
      simulator_->evaluate_with_starts(placement, ReadyOrder(), lease.workspace(), starts);
  return objective_.match([&](const StepTime&) { return step; },
                          [&](const StreamPeriod& stream) {
                            return evaluate_stream(placement, stream.overlap, nullptr);
                          });
}

Evaluation Evaluator::value_of(const Placement& placement, const ReadyOrder& order,
                               std::vector<Bytes>* peaks) {
  return objective_.match([&](const StepTime&) { return evaluate_step(placement, order, peaks); },
                          [&](const StreamPeriod& stream) {
                            return evaluate_stream(placement, stream.overlap, peaks);
                          });
}

Evaluation Evaluator::evaluate_step(const Placement& placement, const ReadyOrder& order,
                                    std::vector<Bytes>* peaks) {
  Lease lease(*this);
  if (peaks == nullptr) return simulator_->evaluate(placement, order, lease.workspace());
  peaks->resize(problem().num_devices());
  return simulator_->evaluate(placement, order, lease.workspace(), *peaks);
}

Evaluation Evaluator::evaluate_stream(const Placement& placement, Overlap overlap,
                                      std::vector<Bytes>* memory) const {
  ThroughputResult result = throughput(problem(), placement, overlap);
  Evaluation value{.step = result.period};
  for (DeviceId device = 0; device < problem().num_devices(); ++device) {
    const Bytes capacity = problem().cluster().device(device).memory;
    value.overflow += std::max<Bytes>(0, result.memory[device] - capacity);
  }
  if (memory != nullptr) *memory = std::move(result.memory);
  return value;
}

}  // namespace emplace
