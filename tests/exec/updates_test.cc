// Optimizers' steps against ones worked out by hand; they change the weight and its state in place.
#include <cmath>

#include <gtest/gtest.h>

#include "exec/run_op.h"

namespace emplace::exec {
namespace {

struct Update {
  std::string type;
  Tensors inputs;  // the weight, its gradient, the state, perhaps the master
  Attributes attributes = {};
  DType weight = DType::kFloat32;
};

// So many steps with the same gradient, in this type.
void train(const Update& update, int steps, const OpTarget& target) {
  GraphBuilder builder(update.type);
  OpSpec op{.name = "update", .type = update.type, .phase = Phase::kUpdate};
  op.attributes = update.attributes;
  for (std::size_t i = 0; i < update.inputs.size(); ++i) {
    const auto sizes = update.inputs[i].sizes();
    const TensorSpec spec{.shape = {sizes.begin(), sizes.end()},
                          .dtype = i < 2 ? update.weight : DType::kFloat32};
    op.inputs.push_back(builder.add({.name = fmt::format("x{}", i), .type = "buffer"}, {spec})[0]);
  }
  builder.add(op, {});
  const Graph graph = std::move(builder).build();
  const CompiledOp compiled = compile_op(graph, *graph.find_op("update"), target);
  EXPECT_TRUE(compiled.native);
  for (int i = 0; i < steps; ++i) {
    Tensors outputs;
    OpStep step{.inputs = update.inputs, .outputs = outputs, .step = i};
    compiled.run(step);
  }
}

class ExecUpdates : public ::testing::TestWithParam<torch::ScalarType> {
 protected:
  OpTarget target() const { return {.real = GetParam(), .narrow = GetParam()}; }
  Tensor given(const std::vector<double>& values) const { return reals(values).to(GetParam()); }
  void expect(const Tensor& found, const std::vector<double>& values) const {
    EXPECT_TRUE(at::allclose(found.to(torch::kDouble), reals(values), 1e-6, 1e-7)) << found;
  }
};

TEST_P(ExecUpdates, gradient_descent) {
  const Tensor weight = given({1, 2});
  train({"SgdUpdate", {weight, given({1, -1})}}, 3, target());
  expect(weight, {0.97, 2.03});
  train({"SgdUpdate", {weight, given({1, -1})}, {{"learning_rate", 0.1}}}, 1, target());
  expect(weight, {0.87, 2.13});
}

TEST_P(ExecUpdates, momentum) {
  const Tensor weight = given({1, 2});
  const Tensor sum = given({0, 0});
  train({"MomentumUpdate", {weight, given({1, -1}), sum}}, 2, target());
  expect(sum, {1.9, -1.9});  // 1, then 0.9 + 1
  expect(weight, {1 - 0.01 * 2.9, 2 + 0.01 * 2.9});
  train({"MomentumUpdate", {weight, given({0, 0}), sum}, {{"momentum", 0.5}}}, 1, target());
  expect(sum, {0.95, -0.95});
}

// While gradients are the same, corrected moments are the gradient and its square, so that a step
// is the learning rate, whatever the gradient.
TEST_P(ExecUpdates, adam) {
  const Tensor weight = given({1, 2, 3});
  const Tensor mean = given({0, 0, 0});
  const Tensor square = given({0, 0, 0});
  train({"AdamUpdate", {weight, given({1, -20, 0.5}), mean, square}}, 4, target());
  expect(weight, {0.996, 2.004, 2.996});
  const double left = std::pow(0.9, 4);
  expect(mean, {1 - left, -20 * (1 - left), 0.5 * (1 - left)});
  expect(square,
         {1 - std::pow(0.999, 4), 400 * (1 - std::pow(0.999, 4)), 0.25 * (1 - std::pow(0.999, 4))});
}

// Weights of 1 and 2: by the gradient, or by themselves.
TEST_P(ExecUpdates, draw_weights_to_zero) {
  const Attributes by_gradient{{"learning_rate", 0.1}, {"weight_decay", 0.5}};
  const Attributes decoupled{{"learning_rate", 0.1}, {"decoupled_decay", 0.5}};
  const Tensor none = given({0, 0});
  Tensor weight = given({1, 2});
  train({"SgdUpdate", {weight, none}, by_gradient}, 1, target());
  expect(weight, {0.95, 1.9});
  weight = given({1, 2});
  train({"MomentumUpdate", {weight, none, given({0, 0})}, by_gradient}, 1, target());
  expect(weight, {0.95, 1.9});
  weight = given({1, 2});
  train({"AdamUpdate", {weight, none, given({0, 0}), given({0, 0})}, decoupled}, 1, target());
  expect(weight, {0.95, 1.9});
  weight = given({1, 2});
  train({"AdamUpdate", {weight, none, given({0, 0}), given({0, 0})}, by_gradient}, 1, target());
  expect(weight, {0.9, 1.9});  // the rate, whatever the gradient
}

TEST_P(ExecUpdates, buffers_are_given_values_and_gradients_wait) {
  const Tensor kept = given({1, 2});
  train({"AccumulateGrad", {kept, given({5, 6})}}, 1, target());
  expect(kept, {1, 2});
  train({"BufferUpdate", {kept, given({5, 6})}}, 1, target());
  expect(kept, {5, 6});
}

// More elements than one thread takes, and none.
TEST_P(ExecUpdates, reach_every_element_once) {
  for (const std::int64_t count : {0, 1, 31, 100'003}) {
    const Tensor ones = torch::ones({count}, GetParam());
    const Tensor weight = torch::zeros({count}, GetParam());
    const Tensor sum = torch::zeros({count}, GetParam());
    train({"MomentumUpdate", {weight, ones, sum}}, 1, target());
    EXPECT_TRUE(at::allclose(weight, ones * -0.01));
    EXPECT_TRUE(at::equal(sum, ones));
    train({"AdamUpdate", {weight, ones, sum.zero_(), torch::zeros({count}, GetParam())}}, 1,
          target());
    EXPECT_TRUE(at::allclose(weight, ones * -0.011));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ExecUpdates, ::testing::Values(torch::kFloat, torch::kDouble),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

// The weight has too few bits for such a step; its master has not.
TEST(ExecMasters, change_by_less_than_their_weights_can_show) {
  const OpTarget target{.real = torch::kFloat, .narrow = torch::kBFloat16};
  for (const std::string type : {"SgdUpdate", "MomentumUpdate", "AdamUpdate"}) {
    const Tensor weight = torch::ones({3}, torch::kBFloat16);
    const Tensor master = torch::ones({3});
    Tensors inputs{weight, torch::ones({3}, torch::kBFloat16)};
    const int states = type == "SgdUpdate" ? 0 : type == "MomentumUpdate" ? 1 : 2;
    for (int i = 0; i < states; ++i) inputs.push_back(torch::zeros({3}));
    inputs.push_back(master);
    const Attributes rate{{"learning_rate", 0.001}};
    train({type, inputs, rate, DType::kBFloat16}, 1, target);
    EXPECT_TRUE(at::allclose(master, torch::full({3}, 0.999F))) << type;
    EXPECT_TRUE(at::equal(weight, torch::ones({3}, torch::kBFloat16))) << type;
    train({type, inputs, {{"learning_rate", 0.1}}, DType::kBFloat16}, 1, target);
    EXPECT_TRUE(at::equal(weight, master.to(torch::kBFloat16))) << type;
    EXPECT_LT(weight[0].item<float>(), 0.95F) << type;
  }
}

}  // namespace
}  // namespace emplace::exec
