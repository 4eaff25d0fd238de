// OptCNN as it was published divides a layer alike in both directions.
#include "tensor/methods/common/layer_pairs.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tensor/partition_setting.h"

#include "zoo/registry.h"

namespace emplace {
namespace {

// Pairs whose ops the plan divides unlike each other, although there is a way that is alike.
int unlike_pairs(const Setting& setting, const Plan& plan) {
  Traffic traffic(setting.on.workers);
  PartitionProblem problem(setting.input, traffic, Reductions::kOnce);
  int unlike = 0;
  for (const LayerPair& pair : layer_pairs(setting.input)) {
    const std::vector<Cuts> ways = problem.ways_of_op(pair.backward, true);
    const auto costs =
        unlike_costs(pair, {plan.ops[setting.input.op_of_class[pair.forward]]}, ways);
    const auto at =
        std::find(ways.begin(), ways.end(), plan.ops[setting.input.op_of_class[pair.backward]]);
    unlike += at == ways.end() || costs[static_cast<std::size_t>(at - ways.begin())] != 0 ? 1 : 0;
  }
  return unlike;
}

TEST(LayerPairs, optcnn_cuts_gradients_as_their_layers) {
  int unlike = 0;
  for (const char* model : {"cifar-10-cnn:batch=16", "alexnet:batch=8",
                            "stacked-rnn:layers=2,hidden=512,sequence=2,batch=8"}) {
    const Setting setting(zoo::build_model(model), 4);
    ASSERT_GT(layer_pairs(setting.input).size(), 5U) << model;
    const PlanSolution published = setting.find("optcnn");
    EXPECT_EQ(published.plan.method, "optcnn");
    EXPECT_EQ(unlike_pairs(setting, published.plan), 0) << model;
    unlike += unlike_pairs(setting, setting.find("optcnn(free_backward=true)").plan);
  }
  EXPECT_GT(unlike, 0) << "what is forbidden happens where it is free";
}

// Rows of x times w: those of y are x's, columns of y are w's, and what x and w share is summed.
TEST(LayerPairs, variables_are_told_by_the_tensors_that_both_touch) {
  const Setting setting(zoo::build_model("stacked-rnn:layers=1,hidden=64,sequence=2,batch=8"), 2);
  int products = 0;
  for (const LayerPair& pair : layer_pairs(setting.input)) {
    const OpId forward = setting.input.op_of_class[pair.forward];
    const auto is_product = [&](OpId op) {
      const auto& type = setting.graph->type(op);
      return type == "Gemm" || type == "MatMul" || type == "Einsum";
    };
    if (!is_product(forward) || !is_product(setting.input.op_of_class[pair.backward])) continue;
    ++products;
    const auto& description = *setting.input.descriptions[forward];
    for (const tdl::VariableId v : description.divisible()) {
      EXPECT_NE(pair.counterparts[v], kUncut)
          << setting.graph->op_name(forward) << ", " << description.variables[v].name;
    }
  }
  EXPECT_GT(products, 0);
}

// Model parallelism divides every layer by the features that it makes, and its gradients with it.
TEST(ModelParallel, convolutions_are_divided_by_the_features_that_they_make) {
  const Setting setting(zoo::build_model("resnet-50:batch=4"), 4);
  const Plan plan = setting.find("model-parallel").plan;
  int convolutions = 0;
  for (OpId op = 0; op < setting.graph->num_ops(); ++op) {
    if (setting.graph->type(op) != "Conv") continue;
    ++convolutions;
    const auto& made = setting.input.descriptions[op]->writes[0].indices[1];
    for (const std::int8_t cut : plan.ops[op]) {
      EXPECT_TRUE(cut != kUncut && made.uses(static_cast<tdl::VariableId>(cut)))
          << setting.graph->op_name(op);
    }
  }
  EXPECT_EQ(convolutions, 53);
}

}  // namespace
}  // namespace emplace
