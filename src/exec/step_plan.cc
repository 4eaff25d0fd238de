#include "exec/step_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"

namespace emplace::exec {
namespace {

// Workers' ops are named "loss@0" and "loss@1", and what puts their results together
// "loss@0/PartSum0".
std::string_view undivided_name(std::string_view name) {
  const std::size_t at = name.rfind('@');
  if (at == name.npos) return name;
  const std::size_t end = name.find_first_not_of("0123456789", at + 1);
  const bool worker = end != at + 1 && (end == name.npos || name.substr(end).starts_with("/Part"));
  return worker ? name.substr(0, at) : name;
}

class Planner {
 public:
  Planner(const Graph& graph, const Cluster& cluster, const Placement& placement)
      : graph_(graph), cluster_(cluster), placement_(placement), copy_of_(graph.num_tensors()) {
    plan_.ops.resize(graph.num_ops());
    plan_.first_ops.resize(cluster.num_devices());
    plan_.first_sends.resize(cluster.num_devices());
    plan_.num_timed.assign(cluster.num_devices(), 0);
  }

  StepPlan run(const std::function<OpId(OpId)>& keeper_of) && {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      plan_op(op);
      plan_order(op);
      const OpId keeper = graph_.is_source(op) ? kNoOp : keeper_of(op);
      if (keeper == kNoOp || placement_[keeper] != placement_[op]) continue;
      plan_.ops[op].keeper = keeper;
      ++plan_.ops[keeper].keeps_for;
    }
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.is_source(op)) continue;
      const PlannedOp& planned = plan_.ops[op];
      if (!graph_.is_view(op)) ++plan_.num_timed[planned.device];
      if (planned.missing == 0) plan_.first_ops[planned.device].push_back(op);
    }
    sort_sends();
    find_losses();
    return std::move(plan_);
  }

 private:
  // What is queued at one moment goes by tensor, then by destination.
  void sort_sends() {
    const auto order = [&](TransferId a, TransferId b) {
      const TensorCopy& x = plan_.copies[plan_.transfers[a].to];
      const TensorCopy& y = plan_.copies[plan_.transfers[b].to];
      return x.tensor != y.tensor ? x.tensor < y.tensor : x.device < y.device;
    };
    for (TensorCopy& copy : plan_.copies) std::sort(copy.sends.begin(), copy.sends.end(), order);
    for (auto& sends : plan_.first_sends) std::sort(sends.begin(), sends.end(), order);
  }

  // Its tensors exist, as it comes after those that make them.
  void plan_op(OpId op) {
    PlannedOp& planned = plan_.ops[op];
    planned.device = placement_[op];
    for (const TensorId tensor : graph_.inputs(op)) {
      const CopyId copy = copy_on(tensor, planned.device);
      const bool again =
          std::find(planned.inputs.begin(), planned.inputs.end(), copy) != planned.inputs.end();
      planned.inputs.push_back(copy);
      if (again || plan_.copies[copy].lasting) continue;
      plan_.copies[copy].readers.push_back(op);
      ++plan_.copies[copy].uses;
      ++planned.missing;
      planned.releases.push_back(copy);
    }
    for (const TensorId tensor : graph_.outputs(op)) {
      const auto copy = static_cast<CopyId>(plan_.copies.size());
      plan_.copies.push_back(
          {.tensor = tensor, .device = planned.device, .lasting = graph_.is_source(op)});
      copy_of_[tensor][planned.device] = copy;
      planned.outputs.push_back(copy);
    }
  }

  void plan_order(OpId op) {
    for (const OpId before : graph_.after(op)) {
      if (graph_.is_source(before)) continue;
      plan_.ops[before].followers.push_back(op);
      ++plan_.ops[op].missing;
    }
  }

  CopyId copy_on(TensorId tensor, DeviceId device) {
    if (const auto found = copy_of_[tensor].find(device); found != copy_of_[tensor].end()) {
      return found->second;
    }
    const DeviceId home = placement_[graph_.producer(tensor)];
    const Link* link = cluster_.link(home, device);
    if (link == nullptr) {
      fail_input("op '{}': its result is needed on device '{}', to which '{}' has no link",
                 graph_.op_name(graph_.producer(tensor)), cluster_.device(device).name,
                 cluster_.device(home).name);
    }
    const CopyId from = copy_of_[tensor].at(home);
    const auto to = static_cast<CopyId>(plan_.copies.size());
    const auto transfer = static_cast<TransferId>(plan_.transfers.size());
    plan_.copies.push_back({.tensor = tensor, .device = device});
    copy_of_[tensor][device] = to;
    plan_.transfers.push_back({from, to, link->channel});
    TensorCopy& sent = plan_.copies[from];
    sent.sends.push_back(transfer);
    ++sent.uses;
    if (sent.lasting) plan_.first_sends[home].push_back(transfer);
    return to;
  }

  // What the backward pass begins with; of a forward pass, single numbers that nothing reads. In a
  // divided graph every worker has the whole number: one of them counts.
  void find_losses() {
    bool training = false;
    std::vector<TensorId> results;
    std::vector<TensorId> seeds;
    std::set<std::string_view> seen;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      training = training || graph_.phase(op) == Phase::kBackward;
      if (graph_.phase(op) == Phase::kBackward && graph_.type(op) == "OnesLike" &&
          seen.insert(undivided_name(graph_.op_name(op))).second) {
        seeds.push_back(graph_.inputs(op)[0]);
      }
      if (graph_.is_source(op) || graph_.outputs(op).empty()) continue;
      const TensorId first = graph_.outputs(op)[0];
      const auto shape = graph_.shape(first);
      const bool number = std::all_of(shape.begin(), shape.end(), [](auto n) { return n == 1; });
      if (number && graph_.consumers(first).empty() &&
          seen.insert(undivided_name(graph_.op_name(op))).second) {
        results.push_back(first);
      }
    }
    for (const TensorId tensor : training ? seeds : results) {
      const CopyId copy = copy_of_[tensor].at(placement_[graph_.producer(tensor)]);
      plan_.losses.push_back(copy);
      ++plan_.copies[copy].uses;
    }
  }

  const Graph& graph_;
  const Cluster& cluster_;
  const Placement& placement_;
  std::vector<std::map<DeviceId, CopyId>> copy_of_;  // by tensor
  StepPlan plan_;
};

}  // namespace

StepPlan plan_step(const Graph& graph, const Cluster& cluster, const Placement& placement,
                   const std::function<OpId(OpId)>& keeper_of) {
  return Planner(graph, cluster, placement).run(keeper_of);
}

}  // namespace emplace::exec
