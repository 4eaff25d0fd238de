// Our own: cuts on all levels at once by time (joint.cc), begun from what the published methods
// find, within the devices' memory; the simulator has the last word.
#include <algorithm>
#include <chrono>
#include <memory>

#include "tensor/evaluate.h"
#include "tensor/methods/methods.h"

namespace emplace {
namespace {

// How much of the memory that the estimate may fill, when what it left out did not fit before.
constexpr double kShrink = 0.85;
constexpr int kTries = 4;
// Of the time, for each of the searches to begin from.
constexpr double kStartShare = 0.1;
// Of what is left then, for the joint search.
constexpr double kMainShare = 0.8;
// A plan that fits may need more tries than there was time for.
constexpr double kLeastSeconds = 0.5;

class Search {
 public:
  explicit Search(const PartitionRequest& request)
      : request_(request), cluster_(std::make_shared<const Cluster>(request.problem.cluster())) {}

  const std::vector<Plan>& plans() const { return plans_; }
  const Plan& best() const { return plans_[best_]; }

  // Returns whether the plan fits.
  bool try_plan(Plan plan) {
    const PlanOutcome outcome =
        evaluate_plan(request_.input, plan, cluster_, request_.devices, request_.cost);
    const Score score{overflow(outcome.peaks), outcome.step};
    plans_.push_back(std::move(plan));
    if (plans_.size() == 1 || score < best_score_) {
      best_ = plans_.size() - 1;
      best_score_ = score;
    }
    return outcome.fits;
  }

  Bytes smallest_memory() const {
    Bytes least = cluster_->device(request_.devices[0]).memory;
    for (const DeviceId device : request_.devices) {
      least = std::min(least, cluster_->device(device).memory);
    }
    return least;
  }

 private:
  // Fitting first, then by how little does not fit, then by time.
  struct Score {
    Bytes overflow = 0;
    Nanoseconds step = 0;
    auto operator<=>(const Score&) const = default;
  };

  Bytes overflow(const std::vector<Bytes>& peaks) const {
    Bytes sum = 0;
    for (DeviceId device = 0; device < peaks.size(); ++device) {
      sum += std::max<Bytes>(peaks[device] - cluster_->device(device).memory, 0);
    }
    return sum;
  }

  const PartitionRequest& request_;
  std::shared_ptr<const Cluster> cluster_;
  std::vector<Plan> plans_;
  std::size_t best_ = 0;
  Score best_score_;
};

}  // namespace

Plan search(const PartitionRequest& request) {
  Search search(request);
  const auto cancelled = [&] { return request.cancelled && request.cancelled(); };
  // What to begin from should not take most of the time.
  PartitionRequest brief = request;
  brief.seconds = request.seconds * kStartShare;
  const auto began = std::chrono::steady_clock::now();
  const auto left = [&] {
    const auto now = std::chrono::steady_clock::now();
    return std::max(0.0, request.seconds - std::chrono::duration<double>(now - began).count());
  };
  for (const auto method : {tofu, recursive_by_time, equal_chop, data_parallel}) {
    if (cancelled() && !search.plans().empty()) break;  // some plan there must be
    search.try_plan(method(brief));
  }
  std::vector<Plan> starts = search.plans();
  PartitionRequest main = request;
  main.seconds = std::max(kLeastSeconds, left() * kMainShare);
  bool fits = cancelled() || search.try_plan(joint_search(main, std::nullopt, starts));
  auto limit = static_cast<double>(search.smallest_memory());
  for (int i = 0; i < kTries && !fits && !cancelled(); ++i) {
    main.seconds = std::max(kLeastSeconds, left() / 2);
    fits = search.try_plan(joint_search(main, static_cast<Bytes>(limit), starts));
    limit *= kShrink;
  }
  for (const auto method : {optcnn, spartan, all_row}) {
    if (cancelled() || left() == 0) break;
    search.try_plan(method(brief));
  }
  Plan plan = search.best();
  plan.method = "search";
  return plan;
}

}  // namespace emplace
