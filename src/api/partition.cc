// emplace/partition.h over run and report.
#include "run/partition.h"

#include <mutex>
#include <optional>
#include <utility>

#include <emplace/partition.h>

#include "base/error.h"

#include "sim/overlap_slowdown.h"

#include "io/iopddl.h"
#include "report/partition_report.h"
#include "report/plan_picture.h"
#include "report/selection_report.h"
#include "run/ticker.h"
#include "selection/solve.h"

namespace emplace {

struct Partition::State {
  PartitionAnswer answer;
};

Partition partition(const std::shared_ptr<const Problem>& problem,
                    const PartitionOptions& options) {
  const double factor = options.overlap_slowdown;
  if (!(factor >= 1 && factor <= kMostOverlapSlowdown)) {
    fail_option("overlap_slowdown {}: expected a number from 1 to {}", factor,
                kMostOverlapSlowdown);
  }
  std::mutex mutex;
  std::string phase;
  const Ticker ticker(options.on_progress, [&] {
    const std::lock_guard lock(mutex);
    return phase;
  });
  PartitionAnswer answer = find_partition(problem, options, [&](const std::string& now) {
    const std::lock_guard lock(mutex);
    phase = now;
  });
  return Partition(std::make_shared<const Partition::State>(Partition::State{std::move(answer)}));
}

Nanoseconds Partition::step() const {
  return state_->answer.outcome.value.step;
}
bool Partition::fits() const {
  return state_->answer.outcome.value.fits();
}
Bytes Partition::moved() const {
  return state_->answer.outcome.moved;
}
std::string Partition::verdict() const {
  return emplace::verdict(state_->answer);
}
std::string Partition::to_text() const {
  return emplace::to_text(state_->answer);
}
std::string Partition::to_json() const {
  return emplace::to_json(state_->answer);
}
std::string Partition::picture_svg() const {
  const PartitionAnswer& answer = state_->answer;
  return plan_picture(*answer.graph, answer.input->descriptions, answer.plan);
}

std::string Partition::plan_json() const {
  return emplace::plan_json(state_->answer);
}
std::shared_ptr<const Problem> Partition::divided() const {
  return state_->answer.outcome.problem;
}
const std::vector<DeviceId>& Partition::placement() const {
  return state_->answer.outcome.placement;
}

Selection select(const std::string& problem_file, const SelectOptions& options) {
  std::mutex mutex;
  std::optional<SelectionProgress> last;
  const SelectionOptions told{.progress = [&](const SelectionProgress& now) {
    const std::lock_guard lock(mutex);
    last = now;
  }};
  const Ticker ticker(options.on_progress, [&] {
    const std::lock_guard lock(mutex);
    return last ? to_line(*last) : std::string("reducing");
  });
  SelectionResult found =
      select_strategies(read_iopddl(problem_file), options.budget, Rng(options.seed), told);
  return {std::move(found.strategies), found.cost, found.lower_bound, found.feasible, found.proven};
}

}  // namespace emplace
