#include "tensor/methods/common/follow_data.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tensor/methods/common/divided_updates.h"
#include "tensor/methods/common/single_dimension.h"

namespace emplace {
namespace {

// How an output lies as the op leaves it; whole where the op leaves partial results.
Cuts kept_as_made(const tdl::Description* description, std::size_t output, const Cuts& op_cuts) {
  Cuts cuts(op_cuts.size(), kUncut);
  if (description == nullptr) return cuts;
  const auto& indices = description->writes[output].indices;
  for (std::size_t level = 0; level < op_cuts.size(); ++level) {
    for (std::size_t d = 0; d < indices.size() && op_cuts[level] != kUncut; ++d) {
      if (indices[d].uses(static_cast<tdl::VariableId>(op_cuts[level]))) {
        cuts[level] = static_cast<std::int8_t>(d);
      }
    }
  }
  return cuts;
}

// The first level, not before `from`, on which some input has examples for all groups.
std::size_t level_of_examples(const PartitionInput& input, const Workers& workers,
                              std::size_t from) {
  std::int64_t most = 0;
  for (OpId op = 0; op < input.graph.num_ops(); ++op) {
    if (input.graph.role(op) != OpRole::kInput) continue;
    for (const TensorId tensor : input.graph.outputs(op)) {
      const auto shape = input.graph.shape(tensor);
      if (!shape.empty()) most = std::max(most, shape[0]);
    }
  }
  std::size_t level = from;
  const auto is_enough = [&] {
    Cuts cuts(level, kUncut);
    cuts.resize(workers.levels(), 0);
    return has_parts_for_all({0, most}, cuts, 0, workers);
  };
  while (level < workers.levels() && !is_enough()) ++level;
  return level < workers.levels() ? level : from;
}

bool is_cut(const Cuts& cuts) {
  return std::any_of(cuts.begin(), cuts.end(), [](std::int8_t cut) { return cut != kUncut; });
}

// Decides from the inputs on, op after op: each is divided as what it reads is, and what it makes
// lies as it leaves it.
class FollowData {
 public:
  FollowData(const PartitionContext& context, WeightStorage storage, std::size_t from)
      : context_(context),
        storage_(storage),
        input_(context.input()),
        traffic_(context.workers()),
        problem_(input_, traffic_),
        first_level_(level_of_examples(input_, context.workers(), from)),
        ways_(single_dimension_ways(problem_, input_.classes, true, first_level_)),
        uncut_(context.workers().levels(), kUncut),
        tensors_(input_.classes.num_tensors),
        ops_(input_.classes.num_ops) {}

  Plan run(std::string method) {
    const Graph& graph = input_.graph;
    keep_weights_whole();
    if (first_level_ > 0) free_updates();
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.role(op) == OpRole::kInput) divide_examples(op);
      if (!graph.is_source(op)) follow(op);
    }
    std::vector<Cuts> tensors;
    for (const auto& cuts : tensors_) tensors.push_back(cuts.value_or(uncut_));
    if (storage_ != WeightStorage::kEverywhere) divide_weights(tensors);
    // Ops that read nothing that is divided are done as what they make is kept.
    std::vector<Cuts> ops = best_ops(problem_, input_, tensors, ways_.ops);
    for (ClassId op = 0; op < input_.classes.num_ops; ++op) {
      if (ops_[op] && problem_.op_cost(op, *ops_[op], tensors) < kForbidden) ops[op] = *ops_[op];
    }
    Plan plan = expand(input_, context_.workers(), std::move(method), tensors, ops);
    if (storage_ == WeightStorage::kInPartsHeld) plan.held = weights();
    return plan;
  }

 private:
  std::optional<Cuts>& kept(TensorId tensor) { return tensors_[input_.classes.of_tensor[tensor]]; }

  // Weights may be in parts on all levels.
  void free_updates() {
    for (ClassId op = 0; op < input_.classes.num_ops; ++op) {
      if (input_.graph.phase(input_.op_of_class[op]) != Phase::kUpdate) continue;
      ways_.ops[op] = problem_.ways_of_op_along_one(op);
    }
  }

  void keep_weights_whole() {
    const Graph& graph = input_.graph;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (!graph.is_source(op) || graph.role(op) == OpRole::kInput) continue;
      for (const TensorId tensor : graph.outputs(op)) kept(tensor) = uncut_;
    }
  }

  // Weights that an update changes, with what is kept as they are: gradients and the optimizer's
  // state. One with few elements in a dimension is cut along several, or on some levels only, and
  // so is what changes it.
  void divide_weights(std::vector<Cuts>& tensors) {
    for_each_change(OpRole::kParameter, [&](OpId op, std::size_t i, ClassId tensor) {
      if (input_.stays_whole[tensor] != 0) return;
      const Cuts cuts =
          cuts_for_reduction(input_.whole(input_.graph.inputs(op)[i]), uncut_, context_.workers());
      if (cuts_to_read(*input_.descriptions[op], i, cuts)) tensors[tensor] = cuts;
    });
    const auto follow_kept = [&](OpId op, std::size_t i, ClassId tensor) {
      const auto cuts = cuts_to_read(*input_.descriptions[op], i, tensors[tensor]);
      std::vector<Cuts>& ways = ways_.ops[input_.classes.of_op[op]];
      if (cuts && std::find(ways.begin(), ways.end(), *cuts) == ways.end()) ways.push_back(*cuts);
    };
    for_each_change(OpRole::kParameter, follow_kept);
    for_each_change(OpRole::kBuffer, follow_kept);
  }

  // What described updates change: op, input and the tensor's class.
  template <typename Function>
  void for_each_change(OpRole role, const Function& function) const {
    const Graph& graph = input_.graph;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.phase(op) != Phase::kUpdate || input_.descriptions[op] == nullptr) continue;
      const auto inputs = graph.inputs(op);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (graph.role(graph.producer(inputs[i])) != role) continue;
        function(op, i, input_.classes.of_tensor[inputs[i]]);
      }
    }
  }

  std::vector<std::uint8_t> weights() const {
    const Graph& graph = input_.graph;
    std::vector<std::uint8_t> held(graph.num_tensors(), 0);
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.role(op) != OpRole::kParameter) continue;
      for (const TensorId tensor : graph.outputs(op)) held[tensor] = 1;
    }
    return held;
  }

  // By rows, where there are enough.
  void divide_examples(OpId op) {
    Cuts rows(first_level_, kUncut);
    rows.resize(context_.workers().levels(), 0);
    for (const TensorId tensor : input_.graph.outputs(op)) {
      const auto& options = ways_.tensors[input_.classes.of_tensor[tensor]];
      const bool possible = std::find(options.begin(), options.end(), rows) != options.end();
      if (!kept(tensor)) kept(tensor) = possible ? rows : uncut_;
    }
  }

  void follow(OpId op) {
    const auto inputs = input_.graph.inputs(op);
    const bool divided = std::any_of(inputs.begin(), inputs.end(), [&](TensorId tensor) {
      return kept(tensor) && is_cut(*kept(tensor));
    });
    if (!divided) return;  // what it makes is as others of its class want it
    std::optional<Cuts>& cuts = ops_[input_.classes.of_op[op]];
    if (!cuts) cuts = nearest_to_inputs(op);
    const auto outputs = input_.graph.outputs(op);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!kept(outputs[i])) kept(outputs[i]) = kept_as_made(input_.descriptions[op], i, *cuts);
    }
  }

  // The way to divide the op that moves the least of what it reads.
  Cuts nearest_to_inputs(OpId op) {
    const ClassId of = input_.classes.of_op[op];
    const auto inputs = input_.graph.inputs(op);
    Cuts nearest = uncut_;
    std::int64_t least = kForbidden;
    for (const Cuts& cuts : ways_.ops[of]) {
      if (!is_cut(cuts) && ways_.ops[of].size() > 1) continue;
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Cuts& at = kept(inputs[i]) ? *kept(inputs[i]) : uncut_;
        sum = add_costs(sum, problem_.access_cost({of, false, i}, cuts, at));
      }
      if (sum < least) {
        least = sum;
        nearest = cuts;
      }
    }
    return nearest;
  }

  const PartitionContext& context_;
  WeightStorage storage_;
  const PartitionInput& input_;
  Traffic traffic_;
  PartitionProblem problem_;
  std::size_t first_level_;
  Ways ways_;
  Cuts uncut_;
  std::vector<std::optional<Cuts>> tensors_;  // by class
  std::vector<std::optional<Cuts>> ops_;
};

}  // namespace

Plan follow_data(const PartitionContext& context, std::string method, WeightStorage storage,
                 std::size_t first_level) {
  return FollowData(context, storage, first_level).run(std::move(method));
}

}  // namespace emplace
