// Gates that lie in one matrix are told apart: the step computes the same, also in parts, and moves
// less.
#include "tensor/interleave.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "graph/training.h"

#include "tensor/captured_operators.h"
#include "tensor/decompose.h"
#include "tensor/methods/all.h"
#include "tensor/topology.h"

#include "exec/partition_check.h"
#include "exec/sources.h"
#include "io/readers.h"
#include "support/captures.h"

namespace emplace {
namespace {

constexpr const char* kPacked = "linear layers of queries, keys and values in one";

const std::string kGated[] = {
    kPacked,
    "zoo:stacked-rnn:layers=2,sequence=3,hidden=12,input=8,classes=10,batch=6",
    "zoo:gpt2:layers=2,hidden=16,heads=4,sequence=6,batch=4,vocabulary=20",
    capture_path("lstm-tiny"),
};

// As linear layers of PyTorch are exported: products of a batch of sequences with one matrix, a sum
// and a Split.
Graph packed_attention(std::int64_t batch, std::int64_t sequence, std::int64_t width) {
  GraphBuilder builder("packed");
  const auto tensor = [](Shape shape) {
    return TensorSpec{.shape = std::move(shape), .dtype = DType::kFloat32};
  };
  const auto weights = [&](const std::string& name, Shape shape) {
    return builder.add({.name = name, .type = "parameter"}, {tensor(std::move(shape))})[0];
  };
  const TensorSpec states = tensor({batch, sequence, width});
  const TensorSpec all = tensor({batch, sequence, 3 * width});
  const TensorSpec scores = tensor({batch, sequence, sequence});
  TensorId x = builder.add({.name = "x", .type = "input"}, {states})[0];
  x = builder.add({.name = "in", .type = "MatMul", .inputs = {x, weights("w", {width, width})}},
                  {states})[0];
  for (const std::string layer : {"0", "1"}) {
    const TensorId w = weights("qkv.w" + layer, {width, 3 * width});
    const TensorId b = weights("qkv.b" + layer, {3 * width});
    const auto product =
        builder.add({.name = "qkv" + layer, .type = "MatMul", .inputs = {x, w}}, {all});
    const auto sum =
        builder.add({.name = "bias" + layer, .type = "Add", .inputs = {b, product[0]}}, {all});
    const std::vector<std::int64_t> thirds(3, width);
    const auto parts = builder.add({.name = "split" + layer,
                                    .type = "Split",
                                    .inputs = sum,
                                    .attributes = {{"axis", std::int64_t{2}}, {"split", thirds}}},
                                   {states, states, states});
    const auto like = builder.add({.name = "scores" + layer,
                                   .type = "MatMul",
                                   .inputs = {parts[0], parts[1]},
                                   .attributes = {{"transB", std::int64_t{1}}}},
                                  {scores});
    const auto shares =
        builder.add({.name = "softmax" + layer, .type = "Softmax", .inputs = like}, {scores});
    x = builder.add({.name = "y" + layer, .type = "MatMul", .inputs = {shares[0], parts[2]}},
                    {states})[0];
  }
  builder.add({.name = "loss",
               .type = "ReduceMean",
               .inputs = {x},
               .attributes = {{"keepdims", std::int64_t{0}}}},
              {tensor({})});
  return decompose(training_step(std::move(builder).build(), {}));
}

Graph apart_from(const std::string& model) {
  if (model == kPacked) return packed_attention(4, 6, 12);
  return decompose(translate_captured(*read_model(model).graph).graph);
}

// The sources of another graph, in the shapes that this one has.
exec::SourceValue as_in(const Graph& other, const exec::SourceValue& sources) {
  return [&other, sources](const Graph& graph, OpId op, std::size_t output) {
    const auto shape = graph.shape(graph.outputs(op)[output]);
    return sources(other, *other.find_op(graph.op_name(op)), output)
        .reshape({shape.data(), shape.size()})
        .contiguous();
  };
}

class Interleaved : public ::testing::TestWithParam<std::string> {};

TEST_P(Interleaved, computes_the_same_in_twofold_dimensions) {
  const Graph whole = apart_from(GetParam());
  const Graph graph = interleave(whole);
  int sums = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) sums += graph.type(op) == "Einsum" ? 1 : 0;
  ASSERT_GT(sums, 5);
  const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
  const auto before = exec::interpret(whole, sources, {.updates = true});
  const auto after = exec::interpret(graph, as_in(whole, sources), {.updates = true});
  for (OpId op = 0; op < whole.num_ops(); ++op) {
    const auto same = graph.find_op(whole.op_name(op));
    ASSERT_TRUE(same) << whole.op_name(op);
    if (graph.find_op(fmt::format("{}/bias", whole.op_name(op)))) continue;
    for (std::size_t i = 0; i < whole.outputs(op).size(); ++i) {
      const torch::Tensor wanted = before[whole.outputs(op)[i]].to(torch::kDouble).flatten();
      const torch::Tensor found = after[graph.outputs(*same)[i]].to(torch::kDouble).flatten();
      EXPECT_TRUE(torch::allclose(wanted, found, 1e-8, 1e-9)) << whole.op_name(op);
    }
  }
}

struct DividedStep {
  DividedStep(Graph made, int count) : graph(std::make_shared<const Graph>(std::move(made))) {
    ClusterSpec spec;
    spec.name = "equal";
    for (int i = 0; i < count; ++i) {
      spec.devices.push_back(
          {.name = fmt::format("gpu{}", i), .kind = "v100", .memory = 1LL << 36});
    }
    spec.links.push_back({.bandwidth = 10'000'000'000, .latency = 5000});
    problem = compile(graph, std::make_shared<const Cluster>(std::move(spec)));
    input = std::make_unique<PartitionInput>(*graph);
  }

  PlanSolution find(const char* method) const {
    PartitionContext context(*input, problem, workers_on(*problem));
    return context.evaluate(all_partition_methods().make({method})->find(context, {}, Rng(1)));
  }

  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Problem> problem;
  std::unique_ptr<PartitionInput> input;
};

TEST_P(Interleaved, computes_the_same_in_parts) {
  for (const int count : {2, 3, 4}) {
    const DividedStep step(interleave(apart_from(GetParam())), count);
    const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
    const auto values = exec::interpret(*step.graph, sources, {.updates = true});
    for (const char* method : {"tofu", "equal-chop"}) {
      SCOPED_TRACE(fmt::format("{} on {}", method, count));
      const Plan plan = step.find(method).plan;
      if (!expect_same(*step.graph, step.input->descriptions, plan, sources, values,
                       {.updates = true})) {
        return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Interleaved, ::testing::ValuesIn(kGated));

// Wide layers and few examples, which are better cut by columns of their weights.
TEST(Interleaved, gates_are_not_exchanged) {
  const Graph whole =
      apart_from("zoo:stacked-rnn:layers=1,sequence=4,hidden=512,input=512,classes=64,batch=16");
  const Bytes before = DividedStep(decompose(whole), 4).find("tofu").moved;
  const Bytes after = DividedStep(interleave(whole), 4).find("tofu").moved;
  EXPECT_LT(static_cast<double>(after), 0.8 * static_cast<double>(before));
}

TEST(Interleaved, queries_keys_and_values_of_linear_layers_are_not_exchanged) {
  const Graph whole = packed_attention(2, 16, 512);
  const Bytes before = DividedStep(decompose(whole), 4).find("tofu").moved;
  const Bytes after = DividedStep(interleave(whole), 4).find("tofu").moved;
  EXPECT_LT(static_cast<double>(after), 0.9 * static_cast<double>(before));
}

}  // namespace
}  // namespace emplace
