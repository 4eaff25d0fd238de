#include "learn/general/rounding.h"

#include <algorithm>

namespace emplace::learn {
namespace {

Placement rounded(const Problem& problem, const Placement& placement,
                  const PartOfGroup& part_of_group) {
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

Rounding::Rounding(const Problem& problem)
    : problem_(&problem), part_of_group_(whole_modules(problem)) {}

std::vector<Placement> Rounding::operator()(const Placement& placement) const {
  std::vector<Placement> result;
  for (const PartOfGroup& parts : part_of_group_) {
    Placement one = rounded(*problem_, placement, parts);
    if (one != placement) result.push_back(std::move(one));
  }
  return result;
}

}  // namespace emplace::learn
