// Every described operator, divided in many ways among 2 to 8 workers, computes what it computes
// whole; forward and backward.
#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "graph/training.h"

#include "tensor/decompose.h"

#include "exec/operator_cases.h"
#include "exec/partition_check.h"

namespace emplace {
namespace {

using exec::Case;

template <class T>
const T& any_of(const std::vector<T>& options, Rng& rng) {
  return options[rng.below(options.size())];
}

// Ways to divide an op in which everybody has something to do.
std::vector<Cuts> valid_ways(PartitionProblem& problem, const PartitionInput& input, OpId op) {
  return problem.ways_of_op(input.classes.of_op[op], true);
}

class Divider {
 public:
  Divider(const Graph& graph, Workers workers)
      : input_(graph, {.gradients = false, .elementwise = false, .steps = false}),
        workers_(std::move(workers)),
        traffic_(workers_),
        problem_(input_, traffic_) {
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      op_ways_.push_back(graph.is_source(op) ? std::vector<Cuts>{Cuts(workers_.levels(), kUncut)}
                                             : valid_ways(problem_, input_, op));
    }
    for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
      const tdl::Region whole = input_.whole(tensor);
      tensor_ways_.push_back(ways_to_cut({whole, all_dimensions(whole.size()), workers_}, true));
    }
  }

  const Descriptions& descriptions() const { return input_.descriptions; }
  const std::vector<Cuts>& ways(OpId op) const { return op_ways_[op]; }

  Plan any_plan(Rng& rng) const {
    Plan plan{.method = "random", .workers = workers_, .tensors = {}, .ops = {}};
    for (const auto& options : tensor_ways_) plan.tensors.push_back(any_of(options, rng));
    for (const auto& options : op_ways_) plan.ops.push_back(any_of(options, rng));
    // Whoever changes a weight must keep what it changes, which any cut of the update is part of.
    const Graph& graph = input_.graph;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.phase(op) != Phase::kUpdate) continue;
      for (const TensorId tensor : graph.inputs(op)) {
        const bool weight = graph.role(graph.producer(tensor)) == OpRole::kParameter;
        if (weight) plan.tensors[tensor] = Cuts(workers_.levels(), kUncut);
      }
    }
    return plan;
  }

 private:
  PartitionInput input_;
  Workers workers_;
  Traffic traffic_;
  PartitionProblem problem_;
  std::vector<std::vector<Cuts>> op_ways_;
  std::vector<std::vector<Cuts>> tensor_ways_;
};

struct Seen {
  std::set<std::string> described;
  std::set<std::string> divided;
};

void check(const Graph& whole, const exec::SeededNumbers& numbers, Seen& seen) {
  const Graph graph = decompose(whole);
  const auto sources = exec::seeded_sources(numbers);
  const auto values = exec::interpret(graph, sources);
  Rng rng(7);
  for (const int count : {2, 3, 4, 6, 8}) {
    const Divider divider(graph, Workers(prime_factors(count)));
    std::size_t plans = 3;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (divider.descriptions()[op] == nullptr) continue;
      seen.described.emplace(graph.type(op));
      if (divider.ways(op).size() > 1) seen.divided.emplace(graph.type(op));
      plans = std::max(plans, std::min<std::size_t>(divider.ways(op).size(), 6));
    }
    for (std::size_t i = 0; i < plans; ++i) {
      if (!expect_same(graph, divider.descriptions(), divider.any_plan(rng), sources, values)) {
        return;
      }
    }
  }
}

// Of a weight or a buffer, with what it is given.
Graph update_of(const std::string& type) {
  const TensorSpec spec{.shape = {4, 6}, .dtype = DType::kFloat32};
  GraphBuilder builder(type);
  const TensorId kept = builder.add({.name = "kept", .type = "buffer"}, {spec})[0];
  const TensorId given = builder.add({.name = "given", .type = "input"}, {spec})[0];
  builder.add({.name = "op", .type = type, .inputs = {kept, given}, .phase = Phase::kUpdate}, {});
  return std::move(builder).build();
}

TEST(Partition, every_operator_computes_in_parts_what_it_computes_whole) {
  Seen seen;
  int number = 0;
  const auto try_case = [&](const Case& model, const Graph& graph) {
    SCOPED_TRACE(fmt::format("case {}: {}", number++, model.type));
    try {
      check(graph, model.numbers, seen);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  };
  for (const Case& model : exec::all_cases()) try_case(model, step_of(model));
  for (const Case& model : exec::all_cases()) try_case(model, forward_of(model));
  for (const Case& model : exec::forward_cases()) try_case(model, forward_of(model));
  for (const Optimizer optimizer : {Optimizer::kMomentum, Optimizer::kAdam}) {
    const Case& product = *std::find_if(exec::all_cases().begin(), exec::all_cases().end(),
                                        [](const Case& model) { return model.type == "Gemm"; });
    try_case(product, training_step(forward_of(product), {.optimizer = optimizer}));
  }
  for (const char* type : {"AccumulateGrad", "BufferUpdate"}) {
    try_case({type, {}, {}}, update_of(type));
  }
  std::set<std::string> unseen;
  for (const std::string_view type : described_types()) {
    if (!seen.divided.contains(std::string(type))) unseen.emplace(type);
  }
  EXPECT_EQ(unseen, std::set<std::string>{}) << "described, but never divided here";
}

TEST(Partition, attention_is_divided_whatever_is_left_out_or_kept) {
  int seen = 0;
  for (const Case& model : exec::forward_cases()) {
    if (!model.type.ends_with("Attention")) continue;
    const Graph graph = forward_of(model);
    const Divider divider(graph, Workers({2}));
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.type(op) != model.type) continue;
      ++seen;
      ASSERT_NE(divider.descriptions()[op], nullptr) << model.type << " " << seen;
      EXPECT_GT(divider.ways(op).size(), 1U) << model.type << " " << seen;
    }
  }
  EXPECT_GE(seen, 7);
}

// The tensor of a graph that was taken apart that is the op's output; nothing where no one op makes
// it any more.
std::optional<TensorId> output_in(const Graph& apart, const Graph& whole, OpId op, std::size_t i) {
  const std::string name(whole.op_name(op));
  if (const auto mean = apart.find_op(name + "/mean"); mean && i == 0) {
    return apart.outputs(*mean)[0];
  }
  if (const auto running = apart.find_op(name + "/running"); running && i > 0) {
    return apart.outputs(*running)[i - 1];
  }
  const auto found = apart.find_op(name);
  const bool same = found && (apart.type(*found) == whole.type(op) || i == 0) &&
                    apart.type(*found) != "BatchNormGradApply";
  return same ? std::optional(apart.outputs(*found)[i]) : std::nullopt;
}

// Batch norms with all their outputs, means of losses that count unequally, and their gradients.
TEST(Partition, operators_that_are_taken_apart_compute_the_same) {
  int compared = 0;
  for (const Case& model : exec::all_cases()) {
    const Graph whole = step_of(model);
    const Graph apart = decompose(whole);
    if (apart.num_ops() == whole.num_ops()) continue;
    const auto sources = exec::seeded_sources(model.numbers);
    const auto before = exec::interpret(whole, sources);
    const auto after = exec::interpret(apart, sources);
    for (OpId op = 0; op < whole.num_ops(); ++op) {
      for (std::size_t i = 0; i < whole.outputs(op).size() && !whole.is_source(op); ++i) {
        const auto tensor = output_in(apart, whole, op, i);
        if (!tensor) continue;
        ++compared;
        EXPECT_TRUE(torch::allclose(before[whole.outputs(op)[i]].to(torch::kDouble),
                                    after[*tensor].to(torch::kDouble), 1e-8, 1e-9))
            << model.type << ": " << whole.op_name(op) << ", output " << i;
      }
    }
  }
  EXPECT_GT(compared, 30);
}

}  // namespace
}  // namespace emplace
