#include "placer/evaluator.h"

#include <algorithm>
#include <utility>

#include "sim/stream_run.h"

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

void Evaluator::order_by(std::string scheduler) {
  if (scheduler != kOwnSchedule) require_scheduler(scheduler);
  scheduler_ = std::move(scheduler);
}

Schedule Evaluator::schedule_of(const Placement& placement, Schedule chosen) const {
  return own_order() ? std::move(chosen) : make_schedule(problem(), placement, scheduler_);
}

Evaluation Evaluator::evaluate(const Placement& placement, const ReadyOrder& order) {
  count(1);
  return in_order(placement, order,
                  [&](const ReadyOrder& own) { return value_of(placement, own, nullptr); });
}

Evaluation Evaluator::evaluate_uncounted(const Placement& placement) {
  return in_order(placement, {},
                  [&](const ReadyOrder& own) { return value_of(placement, own, nullptr); });
}

Evaluation Evaluator::evaluate(const Placement& placement, const ReadyOrder& order,
                               std::vector<Bytes>& peaks) {
  count(1);
  return in_order(placement, order,
                  [&](const ReadyOrder& own) { return value_of(placement, own, &peaks); });
}

Evaluation Evaluator::evaluate_uncounted(const Placement& placement,
                                         std::vector<Nanoseconds>& starts) {
  return in_order(placement, {}, [&](const ReadyOrder& order) {
    Lease lease(*this);
    starts.resize(problem().num_ops());
    Evaluation step = simulator_->evaluate_with_starts(placement, order, lease.workspace(), starts);
    if (measure_) step = measured(placement, order);
    return objective_.match([&](const StepTime&) { return step; },
                            [&](const StreamPeriod& stream) {
                              return evaluate_stream(placement, order, stream.overlap, nullptr);
                            });
  });
}

std::vector<HotSpot> Evaluator::hot_spots(const Placement& placement, const ReadyOrder& order,
                                          std::vector<Bytes>* peaks) {
  count(1);
  return in_order(placement, order, [&](const ReadyOrder& own) {
    Lease lease(*this);
    if (peaks == nullptr) return simulator_->hot_spots(placement, own, lease.workspace());
    peaks->resize(problem().num_devices());
    return simulator_->hot_spots(placement, own, lease.workspace(), *peaks);
  });
}

Evaluation Evaluator::evaluate_exactly(const Placement& placement, const Schedule& schedule,
                                       std::vector<Bytes>* peaks) {
  count(1);
  const ReadyOrder order(problem(), schedule_of(placement, schedule));
  return objective_.match(
      [&](const StepTime&) { return evaluate_step(placement, order, peaks); },
      [&](const StreamPeriod& stream) {
        return valued(stream_throughput(problem(), placement, order, stream.overlap), peaks);
      });
}

Evaluation Evaluator::value_of(const Placement& placement, const ReadyOrder& order,
                               std::vector<Bytes>* peaks) {
  return objective_.match([&](const StepTime&) { return evaluate_step(placement, order, peaks); },
                          [&](const StreamPeriod& stream) {
                            return evaluate_stream(placement, order, stream.overlap, peaks);
                          });
}

Evaluation Evaluator::evaluate_step(const Placement& placement, const ReadyOrder& order,
                                    std::vector<Bytes>* peaks) {
  if (measure_ && peaks == nullptr) return measured(placement, order);
  Lease lease(*this);
  if (peaks == nullptr) return simulator_->evaluate(placement, order, lease.workspace());
  peaks->resize(problem().num_devices());
  const Evaluation value = simulator_->evaluate(placement, order, lease.workspace(), *peaks);
  return measure_ ? measured(placement, order) : value;
}

Evaluation Evaluator::measured(const Placement& placement, const ReadyOrder& order) {
  const std::lock_guard lock(measuring_);
  return measure_(placement, order);
}

Evaluation Evaluator::evaluate_stream(const Placement& placement, const ReadyOrder& order,
                                      Overlap overlap, std::vector<Bytes>* memory) {
  if (stream_is_simulated(problem(), overlap)) return estimate_stream(placement, order, memory);
  return valued(throughput(problem(), placement, overlap), memory);
}

Evaluation Evaluator::estimate_stream(const Placement& placement, const ReadyOrder& order,
                                      std::vector<Bytes>* memory) {
  std::vector<Bytes> peaks;
  Evaluation value = evaluate_step(placement, order, &peaks);
  if (value.fits() && value.step > 0) {
    std::vector<Bytes> resident(problem().num_devices(), 0);
    for (OpId op = 0; op < problem().num_ops(); ++op) {
      resident[placement[op]] += problem().resident_bytes(op);
    }
    Bytes in_flight = kMostInFlight;
    for (DeviceId device = 0; device < problem().num_devices(); ++device) {
      const Bytes passing = peaks[device] - resident[device];
      if (passing == 0) continue;
      const Bytes room = problem().cluster().device(device).memory - resident[device];
      in_flight = std::min(in_flight, room / passing);
    }
    value.step = std::max(throughput(problem(), placement, Overlap::kFull).period,
                          (value.step - 1) / in_flight + 1);
  }
  if (memory != nullptr) *memory = std::move(peaks);
  return value;
}

Evaluation Evaluator::valued(ThroughputResult result, std::vector<Bytes>* memory) const {
  Evaluation value{.step = result.period};
  for (DeviceId device = 0; device < problem().num_devices(); ++device) {
    const Bytes capacity = problem().cluster().device(device).memory;
    value.overflow += std::max<Bytes>(0, result.memory[device] - capacity);
  }
  if (memory != nullptr) *memory = std::move(result.memory);
  return value;
}

}  // namespace emplace
