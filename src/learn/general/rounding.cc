#include "learn/general/rounding.h"

#include <algorithm>

#include "graph/modules.h"

namespace emplace::learn {
namespace {

// By group: the part of the op that takes longest.
std::vector<std::uint32_t> parts_of_groups(const Problem& problem,
                                           const std::vector<std::uint32_t>& part_of_op) {
  std::vector<std::uint32_t> result;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    const auto ops = problem.group_ops(group);
    const OpId longest = *std::max_element(ops.begin(), ops.end(), [&](OpId a, OpId b) {
      return problem.mean_duration(a) < problem.mean_duration(b);
    });
    result.push_back(part_of_op[longest]);
  }
  return result;
}

Placement rounded(const Problem& problem, const Placement& placement,
                  const std::vector<std::uint32_t>& part_of_group) {
  const std::size_t devices = problem.num_devices();
  const std::uint32_t parts = 1 + *std::max_element(part_of_group.begin(), part_of_group.end());
  std::vector<double> time(parts * devices);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const std::uint32_t part = part_of_group[problem.group_of(op)];
    time[part * devices + placement[op]] += static_cast<double>(problem.mean_duration(op));
  }
  Placement result = placement;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const GroupId group = problem.group_of(op);
    const auto first = time.begin() + static_cast<std::ptrdiff_t>(part_of_group[group] * devices);
    const auto most = std::max_element(first, first + static_cast<std::ptrdiff_t>(devices));
    const auto device = static_cast<DeviceId>(most - first);
    if (problem.allowed(group, device)) result[op] = device;
  }
  return result;
}

}  // namespace

Rounding::Rounding(const Problem& problem) : problem_(&problem) {
  const Modules modules = infer_modules(problem.graph());
  part_of_group_.push_back(parts_of_groups(problem, modules.of_op));
  const RecurrentLayers layers = find_recurrent_layers(problem.graph(), modules);
  if (layers.count == 0) return;
  std::vector<std::uint32_t> layer_of_op;
  for (const std::uint32_t module : modules.of_op) {
    layer_of_op.push_back(layers.of_module[module]);
  }
  part_of_group_.push_back(parts_of_groups(problem, layer_of_op));
}

std::vector<Placement> Rounding::operator()(const Placement& placement) const {
  std::vector<Placement> result;
  for (const std::vector<std::uint32_t>& parts : part_of_group_) {
    Placement one = rounded(*problem_, placement, parts);
    if (one != placement) result.push_back(std::move(one));
  }
  return result;
}

}  // namespace emplace::learn
