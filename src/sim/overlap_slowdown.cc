#include "sim/overlap_slowdown.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"

#include "sim/simulator.h"

namespace emplace {
namespace {

using Spans = std::vector<std::pair<Nanoseconds, Nanoseconds>>;

// By device: when something is carried from it or to it; ascending, without overlaps.
std::vector<Spans> carrying_times(const Timeline& timeline) {
  std::vector<Spans> of_device(timeline.devices.size());
  for (const Transfer& transfer : timeline.transfers) {
    if (transfer.finish == transfer.start) continue;
    of_device[transfer.from].emplace_back(transfer.start, transfer.finish);
    of_device[transfer.to].emplace_back(transfer.start, transfer.finish);
  }
  for (Spans& spans : of_device) {
    std::sort(spans.begin(), spans.end());
    Spans merged;
    for (const auto& [start, finish] : spans) {
      if (!merged.empty() && start <= merged.back().second) {
        merged.back().second = std::max(merged.back().second, finish);
      } else {
        merged.emplace_back(start, finish);
      }
    }
    spans = std::move(merged);
  }
  return of_device;
}

Nanoseconds beside(const Spans& spans, const OpSpan& op) {
  auto span = std::partition_point(spans.begin(), spans.end(),
                                   [&](const auto& each) { return each.second <= op.start; });
  Nanoseconds sum = 0;
  for (; span != spans.end() && span->first < op.finish; ++span) {
    sum += std::min(span->second, op.finish) - std::max(span->first, op.start);
  }
  return sum;
}

}  // namespace

Timeline with_slow_overlap(const std::shared_ptr<const Problem>& problem,
                           const Placement& placement, const Schedule& schedule, double factor) {
  EMPLACE_CHECK(factor >= 1);
  constexpr int kMostRounds = 20;
  constexpr double kClose = 1e-3;
  const Cluster& cluster = problem->cluster();
  Timeline timeline = Simulator(problem).run(placement, schedule);
  std::vector<double> lengths(problem->num_ops());
  for (OpId op = 0; op < problem->num_ops(); ++op) {
    lengths[op] = static_cast<double>(problem->duration(op, placement[op]));
  }
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<Spans> carrying = carrying_times(timeline);
    bool changed = false;
    for (OpId op = 0; op < problem->num_ops(); ++op) {
      const auto alone = static_cast<double>(problem->duration(op, placement[op]));
      const auto slow = static_cast<double>(beside(carrying[placement[op]], timeline.ops[op]));
      const double length = alone + (1 - 1 / factor) * slow;
      changed = changed || std::abs(length - lengths[op]) > kClose * alone;
      lengths[op] = length;
    }
    if (!changed) break;
    CompileOptions options = problem->compile_options();
    options.sources = {costs_from(
        "slow overlap", [&](const Graph&, OpId op, const std::string& name, const std::string&) {
          const DeviceId device = *cluster.find_device(name);
          const double time = placement[op] == device
                                  ? std::round(lengths[op])
                                  : static_cast<double>(problem->duration(op, device));
          return std::optional(time / 1000 / cluster.device(device).slowdown.to_double());
        })};
    options.fuse = false;  // lengths of fused kernels are known
    const auto slowed = compile(std::shared_ptr<const Graph>(problem, &problem->graph()),
                                std::shared_ptr<const Cluster>(problem, &cluster), options);
    timeline = Simulator(slowed).run(placement, schedule);
  }
  return timeline;
}

}  // namespace emplace
