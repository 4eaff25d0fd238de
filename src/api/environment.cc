// emplace/environment.h over placer.
#include <algorithm>
#include <utility>

#include <emplace/environment.h>

#include "placer/ranks.h"

#include "api/group_evaluator.h"

namespace emplace {

struct Environment::State {
  State(std::shared_ptr<const Problem> own, const Objective& objective)
      : problem(std::move(own)), evaluator(problem, objective), groups(evaluator) {}

  std::shared_ptr<const Problem> problem;
  Evaluator evaluator;
  GroupEvaluator groups;
};

Environment::Environment(const std::shared_ptr<const Problem>& problem, const Objective& objective)
    : state_(std::make_shared<State>(problem, objective)) {}

const std::shared_ptr<const Problem>& Environment::problem() const {
  return state_->problem;
}

void Environment::evaluate(std::span<const std::int32_t> devices, std::span<StepValue> values,
                           int threads) const {
  state_->groups.evaluate(devices, values, threads);
}

std::int64_t Environment::evaluations() const {
  return state_->evaluator.evaluations();
}

Placement Environment::placement(std::span<const std::int32_t> devices) const {
  Placement placement;
  state_->groups.expand(devices, placement);
  return placement;
}

ProblemSize size_of(const Problem& problem) {
  return {problem.num_ops(), problem.num_groups(), problem.num_devices()};
}

std::vector<GroupId> groups_of(const Problem& problem) {
  return problem.colocation().group_of;
}

namespace {

void add_edges(const Problem& problem, GroupFeatures& features) {
  const Graph& graph = problem.graph();
  std::vector<GroupId> readers;
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const GroupId from = problem.group_of(graph.producer(tensor));
    readers.clear();
    for (const OpId op : graph.consumers(tensor)) readers.push_back(problem.group_of(op));
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (const GroupId to : readers) {
      if (to == from) continue;
      features.edge_from.push_back(static_cast<std::int32_t>(from));
      features.edge_to.push_back(static_cast<std::int32_t>(to));
      features.edge_bytes.push_back(graph.bytes(tensor));
    }
  }
}

void add_group(const Problem& problem, GroupId group, GroupFeatures& features) {
  const Graph& graph = problem.graph();
  const auto ops = problem.group_ops(group);
  const OpId longest = *std::max_element(ops.begin(), ops.end(), [&](OpId a, OpId b) {
    return problem.mean_duration(a) < problem.mean_duration(b);
  });
  features.names.emplace_back(graph.op_name(ops[0]));
  features.types.emplace_back(graph.type(longest));
  features.modules.emplace_back(graph.module(longest));
  features.ops.push_back(static_cast<std::int32_t>(ops.size()));
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    Nanoseconds duration = 0;
    for (const OpId op : ops) duration += problem.duration(op, device);
    features.durations.push_back(duration);
    features.allowed.push_back(problem.allowed(group, device) ? 1 : 0);
  }
  features.resident.push_back(problem.group_resident_bytes(group));
  Bytes outputs = 0;
  for (const OpId op : ops) {
    for (const TensorId tensor : graph.outputs(op)) outputs += graph.bytes(tensor);
  }
  features.outputs.push_back(outputs);
}

}  // namespace

GroupFeatures features_of(const Problem& problem) {
  GroupFeatures features;
  const std::vector<Nanoseconds> up = upward_ranks(problem, /*with_transfers=*/false);
  const std::vector<Nanoseconds> down = downward_ranks(problem, /*with_transfers=*/false);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    add_group(problem, group, features);
    const OpId first = problem.group_ops(group)[0];
    features.before.push_back(down[first]);
    features.after.push_back(up[first]);
  }
  add_edges(problem, features);
  return features;
}

}  // namespace emplace
