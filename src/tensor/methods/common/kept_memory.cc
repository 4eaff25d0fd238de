#include "tensor/methods/common/kept_memory.h"

#include <algorithm>

#include "tensor/movement.h"

namespace emplace {

KeptMemory::KeptMemory(const PartitionInput& input, const Workers& workers)
    : input_(input), workers_(workers), counts_(input.classes.num_tensors) {
  const Graph& graph = input.graph;
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const OpId producer = graph.producer(tensor);
    const OpRole role = graph.role(producer);
    Counts& counts = counts_[input.classes.of_tensor[tensor]];
    if (role == OpRole::kParameter || role == OpRole::kBuffer) {
      ++counts.always;
      continue;
    }
    const auto read_in = [&](Phase phase) {
      const auto consumers = graph.consumers(tensor);
      return std::any_of(consumers.begin(), consumers.end(),
                         [&](OpId consumer) { return graph.phase(consumer) == phase; });
    };
    if (read_in(Phase::kUpdate)) {
      ++counts.gradients;
    } else if (graph.phase(producer) == Phase::kForward && !graph.is_view(producer) &&
               read_in(Phase::kBackward)) {
      ++counts.forward;
    }
  }
}

Bytes KeptMemory::bytes(ClassId tensor, const Cuts& cuts) const {
  const Counts& counts = counts_[tensor];
  const std::int64_t count = counts.always + counts.forward + counts.gradients;
  if (count == 0) return 0;
  const TensorId first = input_.tensor_of_class[tensor];
  const tdl::Region whole = input_.whole(first);
  const auto elements = static_cast<double>(std::max<tdl::Position>(volume(whole), 1));
  double largest = 0;
  for (Worker worker = 0; worker < workers_.count(); ++worker) {
    const auto part = static_cast<double>(volume(part_of(whole, cuts, workers_, worker)));
    largest = std::max(largest, part / elements);
  }
  return static_cast<Bytes>(static_cast<double>(input_.graph.bytes(first)) * largest) * count;
}

SelectionProblem::Interval KeptMemory::alive(ClassId tensor) const {
  const Counts& counts = counts_[tensor];
  const bool during_forward = counts.always + counts.forward > 0;
  const bool during_backward = counts.always + counts.gradients > 0;
  if (!during_forward && !during_backward) return {};
  return {during_forward ? 0 : 1, during_backward ? 2 : 1};
}

}  // namespace emplace
