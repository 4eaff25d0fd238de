// What training begins with.
#include "exec/sources.h"

#include <cmath>

#include <gtest/gtest.h>

#include "graph/training.h"

#include "exec/run_op.h"
#include "zoo/registry.h"

namespace emplace::exec {
namespace {

Tensor value_of(const Graph& graph, std::string_view name, const SourceValue& sources) {
  return sources(graph, graph.find_op(name).value(), 0);
}

TEST(ExecSources, depend_on_the_seed_and_the_name) {
  const Graph step = zoo::build_model("resnet-50:batch=2,image=32");
  const Graph other = zoo::build_model("resnet-50:batch=4,image=64,optimizer=adam");
  int weights = 0;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (step.role(op) != OpRole::kParameter || step.shape(step.outputs(op)[0]).size() < 2) continue;
    const Tensor value = training_sources(1)(step, op, 0);
    ++weights;
    EXPECT_EQ(value.scalar_type(), torch::kFloat);
    EXPECT_TRUE(at::equal(value, value_of(other, step.op_name(op), training_sources(1))));
    EXPECT_FALSE(at::equal(value, value_of(step, step.op_name(op), training_sources(2))));
    // Uniform between minus and plus one over the root of the number of inputs.
    std::int64_t inputs = 1;
    for (const std::int64_t extent : step.shape(step.outputs(op)[0]).subspan(1)) inputs *= extent;
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    EXPECT_LE(value.abs().max().item<double>(), bound * 1.0001);
    EXPECT_NEAR(value.std().item<double>(), bound / std::sqrt(3.0), 0.1 * bound);
  }
  EXPECT_EQ(weights, 54);
}

TEST(ExecSources, scales_are_one_and_biases_state_and_means_are_zero) {
  const Graph step = zoo::build_model("resnet-50:batch=2,image=32");
  std::map<std::string, int> seen;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (!step.is_source(op) || step.role(op) == OpRole::kConstant) continue;
    const std::string_view name = step.op_name(op);
    const Tensor value = training_sources(1)(step, op, 0);
    const auto expect = [&](const std::string& kind, double number) {
      ++seen[kind];
      EXPECT_EQ(value.min().item<double>(), number) << name;
      EXPECT_EQ(value.max().item<double>(), number) << name;
    };
    if (name.ends_with("/momentum")) expect("momentum", 0);
    if (name.ends_with("running_mean")) expect("mean", 0);
    if (name.ends_with("running_var")) expect("variance", 1);
    if (name.ends_with("bias")) expect("bias", 0);
    if (name.ends_with("weight") && value.dim() == 1) expect("scale", 1);
  }
  for (const char* kind : {"momentum", "mean", "variance", "bias", "scale"}) {
    EXPECT_GE(seen[kind], 53) << kind;
  }
}

TEST(ExecSources, masters_are_their_weights_and_numbers_are_rows) {
  const Graph step = zoo::build_model(
      "bert-base:batch=2,sequence=4,layers=1,hidden=16,heads=2,vocabulary=17,positions=8,"
      "dtype=bfloat16");
  int masters = 0;
  const OpTarget target{.real = torch::kFloat, .narrow = torch::kBFloat16};
  const SourceValue sources = training_sources(3, target);
  for (OpId op = 0; op < step.num_ops(); ++op) {
    const std::string name(step.op_name(op));
    if (!name.ends_with("/master")) continue;
    ++masters;
    const Tensor master = sources(step, op, 0);
    EXPECT_EQ(master.scalar_type(), torch::kFloat);
    const Tensor weight = value_of(step, name.substr(0, name.size() - 7), sources);
    EXPECT_TRUE(at::equal(master.to(torch::kBFloat16), weight)) << name;
  }
  EXPECT_GT(masters, 10);
  int inputs = 0;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (!step.op_name(op).ends_with("input_ids")) continue;
    ++inputs;
    const Tensor ids = sources(step, op, 0);
    EXPECT_EQ(ids.scalar_type(), torch::kLong);
    EXPECT_GE(ids.min().item<std::int64_t>(), 0);
    EXPECT_LT(ids.max().item<std::int64_t>(), 17);
  }
  EXPECT_EQ(inputs, 1);
}

TEST(ExecSources, of_a_piece_are_those_of_its_region) {
  const auto sources_of = [](const std::string& name, Shape shape, const Attributes& region) {
    GraphBuilder builder("pieces");
    builder.add({.name = name, .type = "input", .attributes = region}, {real(std::move(shape))});
    const Graph graph = std::move(builder).build();
    return value_of(graph, name, training_sources(7));
  };
  const Tensor whole = sources_of("x", {5, 6}, {});
  const Tensor piece =
      sources_of("x@2", {2, 3}, {{"region_begin", Shape{1, 2}}, {"region_shape", Shape{5, 6}}});
  EXPECT_TRUE(at::equal(piece, whole.narrow(0, 1, 2).narrow(1, 2, 3)));
  EXPECT_NEAR(sources_of("x", {100, 100}, {}).std().item<double>(), 1, 0.05);
}

}  // namespace
}  // namespace emplace::exec
