#include "cli/explanation.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"

#include "run/subset_problem.h"

#include "placers/all.h"

namespace emplace::cli {
namespace {

// Of devices that differ in nothing that matters to a single one, the first; the fastest first.
std::vector<DeviceId> single_devices(const Problem& problem) {
  const StringPool& strings = problem.graph().strings();
  std::set<std::tuple<std::string, std::string, Bytes, Nanoseconds, std::string>> seen;
  std::vector<std::pair<double, DeviceId>> found;
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    const Device& device = problem.cluster().device(id);
    bool allowed = true;
    for (GroupId group = 0; group < problem.num_groups() && allowed; ++group) {
      allowed = problem.allowed(group, id);
    }
    if (!allowed || !seen.emplace(device.kind, device.slowdown.to_string(), device.memory,
                                  device.gap, strings.find(device.name) ? device.name : "")
                         .second) {
      continue;
    }
    double total = 0;
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      total += static_cast<double>(problem.duration(op, id));
    }
    found.emplace_back(total, id);
  }
  std::sort(found.begin(), found.end());
  std::vector<DeviceId> devices;
  for (const auto& [total, id] : found) devices.push_back(id);
  return devices;
}

void try_one_device(const Outcome& outcome, const Objective& objective, Explanation& result) {
  Evaluator evaluator(outcome.simulator, objective);
  Bytes largest = -1;
  for (const DeviceId id : single_devices(outcome.problem())) {
    // What did not fit on a larger device will not on this one.
    const Bytes memory = outcome.problem().cluster().device(id).memory;
    if (memory <= largest) continue;
    largest = memory;
    std::vector<Bytes> peaks;
    const Placement placement(outcome.problem().num_ops(), id);
    const Evaluation value = evaluator.evaluate(placement, {}, peaks);
    const OneDevice one{id, value, peaks[id]};
    if (!result.fastest_device) result.fastest_device = one;
    if (value.fits()) {
      result.fitting_device = one;
      return;
    }
  }
}

std::optional<Split> best_split(const Problem& problem, const std::vector<RunResult>& tried) {
  std::optional<Split> best;
  for (const RunResult& result : tried) {
    if (used_devices(problem, result.result.placement).size() < 2) continue;
    if (best && !(result.evaluation < best->value)) continue;
    best = Split{result.run.placer.to_string(), result.evaluation};
  }
  return best;
}

// What quick placers that like to split make of it.
std::optional<Split> quick_split(const Outcome& outcome, const Objective& objective) {
  constexpr OpId kTooManyOps = 200'000;
  if (outcome.problem().num_devices() < 2 || outcome.problem().num_ops() > kTooManyOps) return {};
  std::vector<RunResult> tried;
  for (const char* key : {"expert", "metis", "heft"}) {
    try {
      Evaluator evaluator(outcome.simulator, objective);
      tried.push_back(run_placer(all_placers(), evaluator, {.placer = {key, {}}}, {}));
    } catch (const Error&) {
      // Not on this cluster, which is no news here.
    }
  }
  return best_split(outcome.problem(), tried);
}

std::vector<Load> find_loads(const Outcome& outcome, const Objective& objective) {
  const Cluster& cluster = outcome.problem().cluster();
  std::vector<Load> loads;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    loads.push_back({cluster.device(id).name, true,
                     outcome.throughput ? outcome.throughput->device_loads[id]
                                        : outcome.timeline.devices[id].busy});
  }
  const bool devices_pay = objective.throughput() && objective.overlap == Overlap::kNone;
  for (ChannelId id = 0; id < cluster.num_channels() && !devices_pay; ++id) {
    loads.push_back({cluster.channel_name(id), false,
                     outcome.throughput ? outcome.throughput->channel_loads[id]
                                        : outcome.timeline.channels[id].busy});
  }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const Load& a, const Load& b) { return a.time > b.time; });
  return loads;
}

}  // namespace

Explanation explain(const Outcome& outcome, const ObjectiveArguments& objective,
                    const ProblemArguments& problem, const std::vector<RunResult>& tried) {
  const Graph& graph = outcome.problem().graph();
  Explanation result;
  result.chain = critical_chain(outcome.problem(), outcome.placement, outcome.timeline);
  result.loads = find_loads(outcome, objective.make());
  result.modules = infer_modules(graph);
  result.contents = device_contents(outcome.problem(), outcome.placement, result.modules);
  result.used = used_devices(outcome.problem(), outcome.placement);
  try_one_device(outcome, objective.make(), result);
  result.best_split = best_split(outcome.problem(), tried);
  if (!tried.empty() && !result.best_split && result.used.size() == 1 &&
      outcome.most_devices == 0) {
    result.best_split = quick_split(outcome, objective.make());
  }
  bool training = false;
  for (OpId op = 0; op < graph.num_ops() && !training; ++op) {
    training = graph.phase(op) == Phase::kBackward;
  }
  result.could_recompute = training && problem.could_recompute();
  return result;
}

}  // namespace emplace::cli
