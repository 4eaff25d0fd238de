#include "placer/evaluator.h"

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

Evaluator::Evaluator(std::shared_ptr<const Simulator> simulator)
    : simulator_(std::move(simulator)) {}

Evaluator::Evaluator(std::shared_ptr<const Problem> problem)
    : Evaluator(std::make_shared<const Simulator>(std::move(problem))) {}

Evaluation Evaluator::evaluate(const Placement& placement, const ReadyOrder& order) {
  evaluations_.fetch_add(1, std::memory_order_relaxed);
  Lease lease(*this);
  return simulator_->evaluate(placement, order, lease.workspace());
}

Evaluation Evaluator::evaluate(const Placement& placement, const ReadyOrder& order,
                               std::vector<Bytes>& peaks) {
  evaluations_.fetch_add(1, std::memory_order_relaxed);
  Lease lease(*this);
  peaks.resize(problem().num_devices());
  return simulator_->evaluate(placement, order, lease.workspace(), peaks);
}

}  // namespace emplace
