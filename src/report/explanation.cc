#include "report/explanation.h"

#include <algorithm>

#include "run/subset_problem.h"

namespace emplace {
namespace {

std::optional<Split> best_split(const Problem& problem, const std::vector<RunResult>& tried) {
  std::optional<Split> best;
  for (const RunResult& result : tried) {
    if (used_devices(problem, result.result.placement).size() < 2) continue;
    if (best && !(result.evaluation < best->value)) continue;
    best = Split{result.run.placer.to_string(), result.evaluation};
  }
  return best;
}

std::vector<Load> find_loads(const Assessment& assessment) {
  const Cluster& cluster = assessment.problem().cluster();
  std::vector<Load> loads;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    loads.push_back({cluster.device(id).name, true, assessment.busy(id)});
  }
  const bool devices_pay = assessment.objective.match(
      [](const StepTime&) { return false; },
      [](const StreamPeriod& stream) { return stream.overlap == Overlap::kNone; });
  for (ChannelId id = 0; id < cluster.num_channels() && !devices_pay; ++id) {
    if (cluster.is_unlimited(id)) continue;  // no work of a channel's own
    loads.push_back({cluster.channel_name(id), false,
                     assessment.throughput ? assessment.throughput->channel_loads[id]
                                           : assessment.timeline.channels[id].busy});
  }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const Load& a, const Load& b) { return a.time > b.time; });
  return loads;
}

// Of modules with a name: ops that take time or hold memory on several devices.
std::vector<CutModule> find_cut_modules(const Assessment& assessment, const Modules& modules) {
  const Problem& problem = assessment.problem();
  std::vector<CutModule> all(modules.size());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const DeviceId device = assessment.placement[op];
    if (problem.duration(op, device) == 0 && problem.resident_bytes(op) == 0) continue;
    std::vector<DeviceId>& devices = all[modules.of_op[op]].devices;
    const auto place = std::lower_bound(devices.begin(), devices.end(), device);
    if (place == devices.end() || *place != device) devices.insert(place, device);
  }
  std::vector<CutModule> cut;
  for (std::uint32_t module = 0; module < modules.size(); ++module) {
    if (modules.names[module].empty() || all[module].devices.size() < 2) continue;
    cut.push_back({modules.names[module], std::move(all[module].devices)});
  }
  return cut;
}

}  // namespace

Explanation explain(const Assessment& assessment, const std::vector<RunResult>& tried,
                    bool could_recompute) {
  const Graph& graph = assessment.problem().graph();
  Explanation result;
  result.chain = critical_chain(assessment.problem(), assessment.placement, assessment.timeline);
  result.loads = find_loads(assessment);
  result.modules = infer_modules(graph);
  result.cut = find_cut_modules(assessment, result.modules);
  result.contents = device_contents(assessment.problem(), assessment.placement, result.modules);
  result.used = used_devices(assessment.problem(), assessment.placement);
  Evaluator evaluator(assessment.simulator, assessment.objective);
  const SingleDevices singles = try_single_devices(evaluator);
  result.fastest_device = singles.fastest;
  result.fitting_device = singles.fitting;
  result.best_split = best_split(assessment.problem(), tried);
  bool training = false;
  for (OpId op = 0; op < graph.num_ops() && !training; ++op) {
    training = graph.phase(op) == Phase::kBackward;
  }
  result.could_recompute = training && could_recompute;
  return result;
}

}  // namespace emplace
