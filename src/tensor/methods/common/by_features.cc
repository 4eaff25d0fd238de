#include "tensor/methods/common/by_features.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tensor/methods/common/single_dimension.h"

namespace emplace {
namespace {

constexpr std::size_t kImageRank = 4;

// Channels or heads of what has four dimensions or more, else the last.
std::int8_t feature_dimension(std::size_t rank) {
  return static_cast<std::int8_t>(rank >= kImageRank || rank == 0 ? 1 : rank - 1);
}

// Where a weight's index has the variable that makes the features of the op's result.
std::optional<std::int8_t> dimension_of_features(const tdl::Description& description,
                                                 std::size_t input) {
  if (description.writes.empty()) return std::nullopt;
  const auto& made = description.writes[0].indices;
  const auto feature = static_cast<std::size_t>(feature_dimension(made.size()));
  if (feature >= made.size()) return std::nullopt;
  for (std::size_t v = 0; v < description.variables.size(); ++v) {
    const auto variable = static_cast<tdl::VariableId>(v);
    if (!made[feature].uses(variable)) continue;
    for (const tdl::Access& read : description.reads) {
      if (read.position != input) continue;
      for (std::size_t d = 0; d < read.indices.size(); ++d) {
        if (read.indices[d].uses(variable)) return static_cast<std::int8_t>(d);
      }
    }
  }
  return std::nullopt;
}

class FeatureCuts {
 public:
  FeatureCuts(const PartitionContext& context, bool convolutions_by_examples)
      : context_(context),
        input_(context.input()),
        by_examples_(convolutions_by_examples),
        traffic_(context.workers()),
        problem_(input_, traffic_, Reductions::kPerOp, context.limit()),
        ways_(single_dimension_ways(problem_, input_.classes, true)),
        dimension_(input_.classes.num_tensors) {}

  Plan run(std::string method) {
    find_weights();
    std::vector<Cuts> tensors;
    for (ClassId tensor = 0; tensor < input_.classes.num_tensors; ++tensor) {
      tensors.push_back(cuts_of(tensor));
    }
    for (ClassId op = 0; op < input_.classes.num_ops; ++op) divide_as_weights(op, tensors);
    return with_best_ops(context_, problem_, std::move(method), tensors, ways_.ops);
  }

 private:
  static constexpr std::int8_t kWhole = kUncut;

  // As the first op that reads them in the forward pass says.
  void find_weights() {
    const Graph& graph = input_.graph;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      const tdl::Description* description = input_.descriptions[op];
      if (graph.is_source(op) || graph.phase(op) != Phase::kForward || description == nullptr) {
        continue;
      }
      const auto inputs = graph.inputs(op);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const OpRole role = graph.role(graph.producer(inputs[i]));
        if (role != OpRole::kParameter && role != OpRole::kBuffer) continue;
        auto& dimension = dimension_[input_.classes.of_tensor[inputs[i]]];
        if (dimension) continue;
        const bool of_images = graph.shape(graph.outputs(op)[0]).size() >= kImageRank;
        dimension = by_examples_ && of_images
                        ? kWhole
                        : dimension_of_features(*description, i).value_or(std::int8_t{0});
      }
    }
  }

  // What reads or makes weights, or their gradients, goes along the features that they are cut by:
  // the forward op makes these, its gradients sum over them or make the weights' own.
  void divide_as_weights(ClassId op, const std::vector<Cuts>& tensors) {
    const OpId first = input_.op_of_class[op];
    const tdl::Description* description = input_.descriptions[first];
    if (description == nullptr) return;
    const auto try_access = [&](const std::vector<tdl::Index>& indices, TensorId tensor) {
      const ClassId of = input_.classes.of_tensor[tensor];
      if (!dimension_[of] || *dimension_[of] == kWhole) return false;
      const Cuts& kept = tensors[of];
      const auto dimension = static_cast<std::size_t>(*dimension_[of]);
      if (kept[0] != *dimension_[of] || dimension >= indices.size()) return false;
      for (std::size_t v = 0; v < description->variables.size(); ++v) {
        if (!indices[dimension].uses(static_cast<tdl::VariableId>(v))) continue;
        const Cuts cuts(context_.workers().levels(), static_cast<std::int8_t>(v));
        std::vector<Cuts>& ways = ways_.ops[op];
        if (std::find(ways.begin(), ways.end(), cuts) == ways.end() ||
            problem_.op_cost(op, cuts, tensors) >= kForbidden) {
          continue;
        }
        ways = {cuts};
        return true;
      }
      return false;
    };
    for (const tdl::Access& read : description->reads) {
      if (try_access(read.indices, input_.graph.inputs(first)[read.position])) return;
    }
    for (std::size_t i = 0; i < description->writes.size(); ++i) {
      if (try_access(description->writes[i].indices, input_.graph.outputs(first)[i])) return;
    }
  }

  Cuts cuts_of(ClassId tensor) const {
    const std::size_t rank = input_.graph.shape(input_.tensor_of_class[tensor]).size();
    const bool image = by_examples_ && rank >= kImageRank;
    const std::int8_t wanted =
        dimension_[tensor].value_or(image ? std::int8_t{0} : feature_dimension(rank));
    const auto& options = ways_.tensors[tensor];
    // Where there are not enough features, examples; else everybody has all of it.
    for (const std::int8_t dimension : {wanted, wanted == kWhole ? kWhole : std::int8_t{0}}) {
      const Cuts cuts(context_.workers().levels(), dimension);
      if (std::find(options.begin(), options.end(), cuts) != options.end()) return cuts;
    }
    return Cuts(context_.workers().levels(), kUncut);
  }

  const PartitionContext& context_;
  const PartitionInput& input_;
  bool by_examples_;
  Traffic traffic_;
  PartitionProblem problem_;
  Ways ways_;
  std::vector<std::optional<std::int8_t>> dimension_;  // by class of tensors: of weights
};

}  // namespace

Plan divide_by_features(const PartitionContext& context, std::string method,
                        bool convolutions_by_examples) {
  return FeatureCuts(context, convolutions_by_examples).run(std::move(method));
}

}  // namespace emplace
