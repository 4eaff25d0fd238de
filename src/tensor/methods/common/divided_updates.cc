#include "tensor/methods/common/divided_updates.h"

#include <algorithm>

#include "tensor/movement.h"

namespace emplace {
namespace {

const tdl::Access* read_of(const tdl::Description& description, std::size_t input) {
  const auto found = std::find_if(description.reads.begin(), description.reads.end(),
                                  [&](const auto& access) { return access.position == input; });
  return found == description.reads.end() ? nullptr : &*found;
}

Cuts dimensions_cut(const tdl::Access& access, const Cuts& variables) {
  Cuts result(variables.size(), kUncut);
  for (std::size_t level = 0; level < variables.size(); ++level) {
    if (variables[level] == kUncut) continue;
    for (std::size_t d = 0; d < access.indices.size(); ++d) {
      if (access.indices[d].uses(static_cast<tdl::VariableId>(variables[level]))) {
        result[level] = static_cast<std::int8_t>(d);
      }
    }
  }
  return result;
}

// `kept`, divided further where that makes parts of what is kept: where nothing inside cuts the
// same dimension, which would make other parts.
Cuts divided_further(const tdl::Region& whole, const Cuts& kept, const Workers& workers) {
  Cuts cuts = cuts_for_reduction(whole, kept, workers);
  for (std::size_t level = 0; level < cuts.size(); ++level) {
    const auto inside = kept.begin() + static_cast<std::ptrdiff_t>(level) + 1;
    if (kept[level] == kUncut && std::find(inside, kept.end(), cuts[level]) != kept.end()) {
      cuts[level] = kUncut;
    }
  }
  return cuts;
}

void divide_update(const PartitionInput& input, OpId op, GradientStorage gradients, Plan& plan) {
  const Graph& graph = input.graph;
  const tdl::Description& description = *input.descriptions[op];
  const auto inputs = graph.inputs(op);
  const auto role_of = [&](TensorId tensor) { return graph.role(graph.producer(tensor)); };
  const auto weight = std::find_if(inputs.begin(), inputs.end(), [&](TensorId tensor) {
    return role_of(tensor) == OpRole::kParameter;
  });
  if (weight == inputs.end() || input.stays_whole[input.classes.of_tensor[*weight]] != 0) return;
  const Cuts& kept = plan.tensors[*weight];
  const Cuts cuts = divided_further(input.whole(*weight), kept, plan.workers);
  const auto variables =
      cuts_to_read(description, static_cast<std::size_t>(weight - inputs.begin()), cuts);
  if (cuts == kept || !variables) return;
  plan.ops[op] = *variables;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const tdl::Access* access = read_of(description, i);
    const OpRole role = role_of(inputs[i]);
    const bool gradient = role == OpRole::kCompute && gradients == GradientStorage::kInParts;
    if (access == nullptr || (role != OpRole::kBuffer && !gradient)) continue;
    plan.tensors[inputs[i]] = dimensions_cut(*access, *variables);
  }
}

}  // namespace

std::optional<Cuts> cuts_to_read(const tdl::Description& description, std::size_t input,
                                 const Cuts& dimensions) {
  const tdl::Access* access = read_of(description, input);
  if (access == nullptr) return std::nullopt;
  Cuts result(dimensions.size(), kUncut);
  for (std::size_t level = 0; level < dimensions.size(); ++level) {
    if (dimensions[level] == kUncut) continue;
    const tdl::Index& index = access->indices[static_cast<std::size_t>(dimensions[level])];
    for (tdl::VariableId v = 0; v < description.variables.size(); ++v) {
      if (index.uses(v)) result[level] = static_cast<std::int8_t>(v);
    }
    if (result[level] == kUncut) return std::nullopt;
  }
  return result;
}

Plan with_divided_updates(const PartitionInput& input, Plan plan, GradientStorage gradients) {
  for (OpId op = 0; op < input.graph.num_ops(); ++op) {
    if (input.graph.phase(op) != Phase::kUpdate || input.graph.is_source(op)) continue;
    if (input.graph.type(op) == "AccumulateGrad") continue;  // changes no weight
    if (input.descriptions[op] != nullptr) divide_update(input, op, gradients, plan);
  }
  return plan;
}

}  // namespace emplace
