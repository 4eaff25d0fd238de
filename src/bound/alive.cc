#include "bound/alive.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace emplace {

Bytes AliveAt::total() const {
  Bytes sum = own;
  for (const AliveTensor& tensor : tensors) sum += tensor.bytes;
  return sum;
}

Liveness::Liveness(const Problem& problem)
    : problem_(problem),
      graph_(problem.graph()),
      root_(graph_.num_tensors()),
      lasting_(graph_.num_tensors()),
      at_once_(graph_.num_ops()) {
  for (OpId op = 0; op < graph_.num_ops(); ++op) {
    const bool lasts = graph_.role(op) == OpRole::kParameter || graph_.role(op) == OpRole::kBuffer;
    for (const TensorId tensor : graph_.outputs(op)) {
      root_[tensor] = graph_.is_view(op) ? root_[graph_.inputs(op)[0]] : tensor;
      lasting_[tensor] = lasts || lasting_[root_[tensor]];
    }
    // A view waits for nothing but what it is a view of, on the same device.
    const auto inputs = graph_.inputs(op);
    const bool one = std::all_of(inputs.begin(), inputs.end(), [&](TensorId tensor) {
      return graph_.producer(tensor) == graph_.producer(inputs[0]);
    });
    at_once_[op] =
        graph_.after(op).empty() &&
        (inputs.empty() ? graph_.is_source(op)
                        : graph_.is_view(op) && one && at_once_[graph_.producer(inputs[0])]);
  }
}

AliveAt Liveness::at(OpId op) const {
  std::vector<bool> before = at_once_;
  std::vector<bool> since(graph_.num_ops());  // runs now or later
  before[op] = true;
  for (OpId i = op + 1; i-- > 0;) {
    if (!before[i]) continue;
    for (const TensorId tensor : graph_.inputs(i)) before[graph_.producer(tensor)] = true;
    for (const OpId earlier : graph_.after(i)) before[earlier] = true;
  }
  since[op] = true;
  AliveAt result{op, graph_.temp_bytes(op), {}};
  for (const TensorId tensor : graph_.outputs(op)) result.own += graph_.memory_bytes(tensor);
  std::vector<std::pair<TensorId, OpId>> needed;  // tensors from before, and who needs them
  for (OpId i = op; i < graph_.num_ops(); ++i) {
    for (const TensorId tensor : graph_.inputs(i)) {
      since[i] = since[i] || since[graph_.producer(tensor)];
    }
    for (const OpId earlier : graph_.after(i)) since[i] = since[i] || since[earlier];
    if (!since[i]) continue;
    for (const TensorId tensor : graph_.inputs(i)) {
      const OpId producer = graph_.producer(tensor);
      if (!before[producer] || producer == op || lasting_[tensor]) continue;
      if (i != op || !overwrites(op, tensor)) needed.emplace_back(tensor, i);
    }
  }
  // Views of one tensor may lie in the same memory.
  std::stable_sort(needed.begin(), needed.end(),
                   [&](const auto& a, const auto& b) { return root_[a.first] < root_[b.first]; });
  for (const auto& [tensor, user] : needed) {
    const TensorId root = root_[tensor];
    if (result.tensors.empty() || result.tensors.back().tensor != root) {
      result.tensors.push_back({root, 0, user});
    }
    AliveTensor& known = result.tensors.back();
    const auto worth = [&](Bytes bytes, OpId by) {
      return std::pair(bytes, problem_.fastest_duration(by));
    };
    if (worth(held(tensor), user) > worth(known.bytes, known.needed_by)) {
      known = {root, held(tensor), user};
    }
  }
  return result;
}

// In the order of the file, which is one that a device could run.
std::vector<OpId> Liveness::likely_moments(std::size_t tries) const {
  std::vector<Bytes> change(graph_.num_ops() + 1);
  std::vector<OpId> last_use(graph_.num_tensors(), 0);
  for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
    const auto users = graph_.consumers(tensor);
    const OpId last = users.empty() ? graph_.producer(tensor) : users.back();
    last_use[root_[tensor]] = std::max(last_use[root_[tensor]], last);
  }
  for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
    if (root_[tensor] != tensor || lasting_[tensor]) continue;
    change[graph_.producer(tensor)] += graph_.memory_bytes(tensor);
    change[last_use[tensor] + 1] -= graph_.memory_bytes(tensor);
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  // The fullest of each stretch, the fullest stretches first.
  const std::size_t stretch = graph_.num_ops() / (4 * tries) + 1;
  std::vector<OpId> moments;
  for (OpId first = 0; first < graph_.num_ops(); first = first + stretch) {
    OpId best = kNoOp;
    for (OpId op = first; op < std::min<std::size_t>(graph_.num_ops(), first + stretch); ++op) {
      if (problem_.fastest_duration(op) == 0) continue;
      if (best == kNoOp || change[op] > change[best]) best = op;
    }
    if (best != kNoOp) moments.push_back(best);
  }
  std::stable_sort(moments.begin(), moments.end(),
                   [&](OpId a, OpId b) { return change[a] > change[b]; });
  moments.resize(std::min(moments.size(), tries));
  return moments;
}

std::vector<AliveAt> Liveness::full_moments(std::size_t tries) const {
  std::vector<AliveAt> result;
  for (const OpId op : likely_moments(tries)) result.push_back(at(op));
  std::stable_sort(result.begin(), result.end(),
                   [](const AliveAt& a, const AliveAt& b) { return a.total() > b.total(); });
  return result;
}

HeldAt::HeldAt(const Problem& problem, const AliveAt& alive) {
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    by_group.push_back(problem.group_resident_bytes(group));
  }
  by_group[problem.group_of(alive.op)] += alive.own;
  for (const AliveTensor& tensor : alive.tensors) {
    const GroupId from = problem.group_of(problem.graph().producer(tensor.tensor));
    const GroupId to = problem.group_of(tensor.needed_by);
    if (from == to) {
      by_group[from] += tensor.bytes;
    } else {
      shared.push_back({from, to, tensor.bytes});
    }
  }
}

}  // namespace emplace
