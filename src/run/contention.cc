#include "run/contention.h"

#include <algorithm>
#include <vector>

#include "sim/simulator.h"

namespace emplace {
namespace {

using Shares = std::vector<double>;  // by device: how busy the others are, 0 to 1

const MeasuredTime* find_time(const Graph& graph, OpId op, const std::string& name) {
  for (const MeasuredTime& time : graph.measured_times(op)) {
    if (graph.strings().get(time.device) == name) return &time;
  }
  return nullptr;
}

// How much longer each op takes where it is placed when all others are busy, in nanoseconds.
std::vector<double> slowdowns(const Problem& problem, const Placement& placement) {
  std::vector<double> more(problem.num_ops(), 0);
  const Graph& graph = problem.graph();
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const Device& device = problem.cluster().device(placement[op]);
    const MeasuredTime* alone = find_time(graph, op, device.kind);
    const MeasuredTime* busy = find_time(graph, op, busy_name(device.kind));
    if (alone == nullptr || busy == nullptr) continue;
    more[op] = 1000 * device.slowdown.to_double() *
               (busy->microseconds.to_double() - alone->microseconds.to_double());
  }
  return more;
}

Shares others_busy(const Timeline& timeline) {
  const auto devices = timeline.devices.size();
  Shares shares(devices, 0);
  if (devices < 2 || timeline.step == 0) return shares;
  double all = 0;
  for (const DeviceUse& use : timeline.devices) all += static_cast<double>(use.busy);
  for (std::size_t i = 0; i < devices; ++i) {
    const double others = all - static_cast<double>(timeline.devices[i].busy);
    shares[i] = others / static_cast<double>(timeline.step) / static_cast<double>(devices - 1);
  }
  return shares;
}

Timeline with_shares(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                     const Schedule& schedule, const std::vector<double>& more,
                     const Shares& shares) {
  const Cluster& cluster = problem->cluster();
  CompileOptions options = problem->compile_options();
  options.sources = {costs_from(
      "contention", [&](const Graph&, OpId op, const std::string& name, const std::string&) {
        const DeviceId device = *cluster.find_device(name);
        const double alone = static_cast<double>(problem->duration(op, device));
        const double extra = placement[op] == device ? more[op] * shares[device] : 0;
        const double slowdown = cluster.device(device).slowdown.to_double();
        return std::optional(std::max(0.0, alone + extra) / 1000 / slowdown);
      })};
  const auto mixed = compile(std::shared_ptr<const Graph>(problem, &problem->graph()),
                             std::shared_ptr<const Cluster>(problem, &cluster), options);
  return Simulator(mixed).run(placement, schedule);
}

}  // namespace

std::string busy_name(const std::string& kind) {
  return kind + "/busy";
}

Timeline predict(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                 const Schedule& schedule) {
  Timeline timeline = Simulator(problem).run(placement, schedule);
  const std::vector<double> more = slowdowns(*problem, placement);
  if (std::all_of(more.begin(), more.end(), [](double time) { return time == 0; })) return timeline;
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    timeline = with_shares(problem, placement, schedule, more, others_busy(timeline));
  }
  return timeline;
}

}  // namespace emplace
