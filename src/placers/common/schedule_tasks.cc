#include "placers/common/schedule_tasks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "stream/contiguous_split.h"
#include "stream/split_units.h"

namespace emplace {
namespace {

constexpr std::uint32_t kNoTask = ~std::uint32_t{0};

void add_devices(const Problem& problem, ScheduleTasks& tasks) {
  tasks.num_devices = problem.num_devices();
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    tasks.gap.push_back(problem.cluster().device(device).gap);
    tasks.capacity.push_back(problem.cluster().device(device).memory);
  }
}

// All groups of a unit have to be allowed where it is; where none is, wherever the first may be.
void add_units(const Problem& problem, std::uint32_t count, StepTasks& step) {
  step.tasks.memory.assign(count, 0);
  step.tasks.allowed.assign(count, {});
  std::vector<std::uint32_t> groups(count, 0);
  std::vector<std::vector<std::uint32_t>> votes(
      count, std::vector<std::uint32_t>(problem.num_devices(), 0));
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    const std::uint32_t unit = step.unit_of_group[group];
    step.tasks.memory[unit] += problem.group_resident_bytes(group);
    ++groups[unit];
    for (const DeviceId device : problem.allowed_devices(group)) ++votes[unit][device];
  }
  for (std::uint32_t unit = 0; unit < count; ++unit) {
    const std::uint32_t most = *std::max_element(votes[unit].begin(), votes[unit].end());
    for (DeviceId device = 0; device < problem.num_devices(); ++device) {
      if (votes[unit][device] == most) step.tasks.allowed[unit].push_back(device);
    }
  }
}

void add_durations(const Problem& problem, std::uint32_t count, StepTasks& step) {
  step.tasks.tasks.assign(count, {});
  for (auto& task : step.tasks.tasks) task.duration.assign(problem.num_devices(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    ScheduleTasks::Task& task = step.tasks.tasks[step.task_of_op[op]];
    task.unit = step.unit_of_group[problem.group_of(op)];
    for (DeviceId device = 0; device < problem.num_devices(); ++device) {
      const Nanoseconds duration = problem.duration(op, device);
      if (duration == 0) continue;
      if (task.duration[device] > 0) task.duration[device] += step.tasks.gap[device];
      task.duration[device] += duration;
    }
  }
}

// The lengths with those of one more tensor. An op's tensors travel side by side, as far as the
// program knows; a cluster's do not.
void add_lengths(const Problem& problem, TensorId tensor, bool side_by_side,
                 std::vector<Nanoseconds>& lengths) {
  const DeviceId devices = problem.num_devices();
  lengths.resize(static_cast<std::size_t>(devices) * devices, 0);
  for (DeviceId a = 0; a < devices; ++a) {
    for (DeviceId b = 0; b < devices; ++b) {
      if (a == b) continue;
      const Nanoseconds time = problem.transfer_time(tensor, a, b);
      Nanoseconds& known = lengths[static_cast<std::size_t>(a) * devices + b];
      if (time == Problem::kNoLink) {
        known = ScheduleTasks::kNoLink;
      } else {
        known = side_by_side ? std::max(known, time) : known + time;
      }
    }
  }
}

// What goes between tasks, against their order left out.
void add_edges(const Problem& problem, StepTasks& step) {
  const Graph& graph = problem.graph();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Nanoseconds>> edges;
  std::vector<std::uint32_t> seen(step.tasks.tasks.size(), kNoTask);
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const std::uint32_t from = step.task_of_op[graph.producer(tensor)];
    for (const OpId reader : graph.consumers(tensor)) {
      const std::uint32_t to = step.task_of_op[reader];
      if (to <= from || std::exchange(seen[to], tensor) == tensor) continue;
      add_lengths(problem, tensor, step.exact, edges[{from, to}]);
    }
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const OpId before : graph.after(op)) {
      const std::uint32_t from = step.task_of_op[before];
      const std::uint32_t to = step.task_of_op[op];
      if (from < to) edges[{from, to}];
    }
  }
  for (auto& [ends, length] : edges) {
    step.tasks.edges.push_back({ends.first, ends.second, std::move(length)});
  }
}

// Every time of a step is a sum of these.
Nanoseconds common_divisor(const Problem& problem) {
  const Cluster& cluster = problem.cluster();
  Nanoseconds result = 0;
  for (DeviceId a = 0; a < problem.num_devices(); ++a) {
    result = std::gcd(result, cluster.device(a).gap);
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      result = std::gcd(result, problem.duration(op, a));
    }
    for (DeviceId b = 0; b < problem.num_devices(); ++b) {
      const Link* link = cluster.link(a, b);
      if (link == nullptr) continue;
      result = std::gcd(result, link->hold);
      for (TensorId tensor = 0; tensor < problem.graph().num_tensors(); ++tensor) {
        result = std::gcd(result, problem.transfer_time(tensor, a, b));
      }
    }
  }
  return std::max<Nanoseconds>(result, 1);
}

}  // namespace

StepTasks tasks_of_ops(const Problem& problem) {
  StepTasks result;
  add_devices(problem, result.tasks);
  result.unit_of_group.resize(problem.num_groups());
  std::iota(result.unit_of_group.begin(), result.unit_of_group.end(), 0U);
  result.task_of_op.resize(problem.num_ops());
  std::iota(result.task_of_op.begin(), result.task_of_op.end(), 0U);
  add_units(problem, problem.num_groups(), result);
  add_durations(problem, problem.num_ops(), result);
  add_edges(problem, result);
  result.tasks.step = common_divisor(problem);
  return result;
}

StepTasks tasks_of_clusters(const Problem& problem, std::uint32_t most) {
  StepTasks result;
  result.exact = false;
  add_devices(problem, result.tasks);
  const SplitUnits units = find_coarse_split_units(problem);
  std::vector<DeviceId> devices(problem.num_devices());
  std::iota(devices.begin(), devices.end(), DeviceId{0});
  const StreamModel model(problem, Overlap::kNone);
  const SplitProblem split = merge_units(
      make_split_problem(model, devices, SplitEstimate::kTypical), units.of_group, units.size());
  const std::vector<std::uint32_t> run = merge_into_runs(split, numbered_order(units), most);
  const std::uint32_t count = std::min(most, units.size());
  for (const std::uint32_t unit : units.of_group) result.unit_of_group.push_back(run[unit]);
  add_units(problem, count, result);
  // Forward tasks in the order of the runs, then the others in the opposite one.
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const std::uint32_t unit = result.unit_of_group[problem.group_of(op)];
    const bool forward = problem.graph().phase(op) == Phase::kForward;
    result.task_of_op.push_back(forward ? unit : 2 * count - 1 - unit);
  }
  add_durations(problem, 2 * count, result);
  for (std::uint32_t i = 0; i < count; ++i) {
    result.tasks.tasks[i].unit = i;
    result.tasks.tasks[2 * count - 1 - i].unit = i;
  }
  add_edges(problem, result);
  return result;
}

}  // namespace emplace
