#include "exec/segments.h"

#include <algorithm>
#include <map>

namespace emplace::exec {
namespace {

class Cutter {
 public:
  Cutter(const Graph& graph, const StepPlan& plan, DeviceId device, const ProgramOrder& order)
      : graph_(graph), plan_(plan), device_(device), order_(order) {
    for (TransferId i = 0; i < plan.transfers.size(); ++i) {
      if (plan.copies[plan.transfers[i].to].device == device) {
        transfer_to_[plan.transfers[i].to] = i;
      }
    }
  }

  std::vector<Segment> run() && {
    segments_.emplace_back();
    std::vector<OpId> ops;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (plan_.ops[op].device == device_ && !graph_.is_source(op)) ops.push_back(op);
    }
    // Ties stay in the graph's order, in which an op comes after what it needs.
    if (!order_.starts.empty()) {
      std::stable_sort(ops.begin(), ops.end(),
                       [&](OpId a, OpId b) { return order_.starts[a] < order_.starts[b]; });
    }
    for (const OpId op : ops) add(op);
    return std::move(segments_);
  }

 private:
  void add(OpId op) {
    begin_if_late(op);
    Segment& segment = segments_.back();
    segment.ops.push_back(op);
    if (plan_.ops[op].missing > 0) segment.waits.push_back(op);
    for (const CopyId copy : plan_.ops[op].inputs) {
      const auto arriving = transfer_to_.find(copy);
      if (arriving == transfer_to_.end() || arrived_[arriving->second]) continue;
      arrived_[arriving->second] = true;
      segment.arrivals.push_back(arriving->second);
    }
    for (const CopyId copy : plan_.ops[op].outputs) {
      const auto& sends = plan_.copies[copy].sends;
      segment.sends.insert(segment.sends.end(), sends.begin(), sends.end());
    }
    const auto& followers = plan_.ops[op].followers;
    const bool elsewhere = std::any_of(followers.begin(), followers.end(), [&](OpId follower) {
      return plan_.ops[follower].device != device_;
    });
    if (elsewhere) segment.followed.push_back(op);
  }

  // What other devices need of a segment is sent when all of it has been launched. So it must not
  // wait for something that comes of what it sends itself. All that it waits for, but for what its
  // first op needs, is made by ops that start before that one, and so do the first ops of their
  // segments: there can be no circle.
  void begin_if_late(OpId op) {
    if (plan_.ops[op].missing == 0) return;
    const Segment& segment = segments_.back();
    if (segment.ops.empty()) return;
    if (!order_.starts.empty() && is_there(op, order_.starts[segment.ops.front()])) return;
    segments_.emplace_back();
  }

  // All that comes from other devices, by the simulated times, before that one. What takes no time
  // may come of an op that starts just then.
  bool is_there(OpId op, Nanoseconds time) const {
    for (const CopyId copy : plan_.ops[op].inputs) {
      const auto arriving = transfer_to_.find(copy);
      if (arriving == transfer_to_.end()) continue;
      const auto known = arrived_.find(arriving->second);
      if (known != arrived_.end() && known->second) continue;
      const auto simulated = order_.arrivals.find({plan_.copies[copy].tensor, device_});
      if (simulated == order_.arrivals.end() || simulated->second >= time) return false;
    }
    for (const OpId before : graph_.after(op)) {
      const bool elsewhere = !graph_.is_source(before) && plan_.ops[before].device != device_;
      if (elsewhere && order_.starts[before] >= time) return false;
    }
    return true;
  }

  const Graph& graph_;
  const StepPlan& plan_;
  DeviceId device_;
  const ProgramOrder& order_;
  std::map<CopyId, TransferId> transfer_to_;
  std::map<TransferId, bool> arrived_;
  std::vector<Segment> segments_;
};

}  // namespace

void wait_for_others_alone(const Graph& graph, DeviceId device, StepPlan& plan) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    PlannedOp& planned = plan.ops[op];
    if (planned.device != device || graph.is_source(op)) continue;
    planned.missing = 0;
    for (const CopyId copy : planned.releases) {
      const OpId producer = graph.producer(plan.copies[copy].tensor);
      planned.missing += plan.ops[producer].device == device ? 0 : 1;
    }
    for (const OpId before : graph.after(op)) {
      const bool here = graph.is_source(before) || plan.ops[before].device == device;
      planned.missing += here ? 0 : 1;
    }
  }
}

std::vector<Segment> cut_segments(const Graph& graph, const StepPlan& plan, DeviceId device,
                                  const ProgramOrder& order) {
  return Cutter(graph, plan, device, order).run();
}

}  // namespace emplace::exec
