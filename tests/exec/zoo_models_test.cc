// The zoo's models, executed at small sizes.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "exec/gradient_check.h"
#include "exec/small_models.h"
#include "zoo/registry.h"

namespace emplace::exec {
namespace {

void add_types_without_kernel(const zoo::ModelInfo& info, std::set<std::string>& missing) {
  for (const char* training : {"true", "false"}) {
    const Graph graph = info.build({{"batch", "2"}, {"training", training}}, {});
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (!graph.is_source(op) && !has_kernel(graph.type(op))) missing.emplace(graph.type(op));
    }
  }
}

TEST(ExecZoo, there_is_a_kernel_for_every_op_of_every_model) {
  std::set<std::string> missing;
  for (const zoo::ModelInfo& info : zoo::models()) add_types_without_kernel(info, missing);
  for (const zoo::ModelInfo& info : zoo::families()) add_types_without_kernel(info, missing);
  EXPECT_EQ(missing, std::set<std::string>{});
}

TEST(ExecZoo, gradients_are_the_same_where_activations_are_computed_again) {
  const Graph step = zoo::build_model(
      "bert-base:batch=2,sequence=4,layers=2,hidden=8,heads=2,vocabulary=17,positions=8",
      {.recompute = {"bert.encoder.layer.*"}});
  bool again = false;
  for (OpId op = 0; op < step.num_ops() && !again; ++op) {
    again = step.op_name(op).ends_with("/recompute");
  }
  EXPECT_TRUE(again);
  expect_gradients(step);
}

// What dropout leaves of the scores is drawn three times: forward, again, and for the gradient.
TEST(ExecZoo, attention_that_is_computed_again_drops_the_same) {
  const Graph step = zoo::build_model(
      "gpt2-small:batch=2,sequence=4,layers=2,hidden=8,heads=2,vocabulary=17,positions=8,"
      "attention=fused,dropout=0.5",
      {.recompute = {"transformer.h.*"}});
  int again = 0;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    const bool copy = step.op_name(op).ends_with("/recompute");
    if (copy && step.type(op) == "FlashAttention") ++again;
  }
  EXPECT_EQ(again, 2);
  expect_gradients(step);
}

class ExecZooModel : public ::testing::TestWithParam<const char*> {};

TEST_P(ExecZooModel, has_the_gradients_of_its_forward_pass) {
  expect_gradients(zoo::build_model(GetParam()), {.low = -0.5, .high = 0.5});
}

TEST_P(ExecZooModel, runs_forward_alone) {
  const Graph graph = zoo::build_model(std::string(GetParam()) + ",training=false");
  for (const torch::Tensor& value : interpret(graph, seeded_sources())) {
    EXPECT_TRUE(value.defined());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExecZooModel, ::testing::ValuesIn(kSmallModels),
                         [](const auto& test) { return name_of_model(test.param); });

}  // namespace
}  // namespace emplace::exec
