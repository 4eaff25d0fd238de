// Training as PyTorch would do it: the forward pass on parameters that require gradients,
// backward() through libtorch's own formulas, and an optimizer written out here. Executed steps
// give the same losses, gradients and parameters, step after step.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "base/error.h"

#include "exec/small_models.h"
#include "exec/test_machine.h"
#include "interpreter/interpreter.h"
#include "zoo/registry.h"

namespace emplace::exec {
namespace {

constexpr std::uint64_t kTrainingSeed = 9;
constexpr int kTrainedSteps = 3;

// The update ops of a step: the parameter, its gradient, then the optimizer's state.
std::vector<OpId> weight_updates(const Graph& graph) {
  std::vector<OpId> updates;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) == Phase::kUpdate && !graph.is_source(op)) updates.push_back(op);
  }
  return updates;
}

class Reference {
 public:
  explicit Reference(const Graph& graph) : graph_(graph), updates_(weight_updates(graph)) {
    const SourceValue begin = training_sources(kTrainingSeed, wide());
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (!graph.is_source(op)) continue;
      for (std::size_t i = 0; i < graph.outputs(op).size(); ++i) {
        values_[graph.outputs(op)[i]] = begin(graph, op, i);
      }
    }
  }

  // The loss of the next step, after which gradients and parameters are those of it.
  double step() {
    std::map<TensorId, Tensor> leaves;
    for (const OpId op : updates_) {
      const TensorId parameter = graph_.inputs(op)[0];
      leaves[parameter] = values_.at(parameter).clone().requires_grad_();
    }
    const auto source = [&](const Graph& graph, OpId op, std::size_t output) {
      const TensorId tensor = graph.outputs(op)[output];
      const auto leaf = leaves.find(tensor);
      return leaf == leaves.end() ? values_.at(tensor) : leaf->second;
    };
    const Tensors tensors = interpret(graph_, source, {.target = wide(), .step = num_steps_++});
    Tensor loss = torch::zeros({}, torch::kDouble);
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.type(op) == "OnesLike") loss = loss + tensors[graph_.inputs(op)[0]].sum();
    }
    loss.backward();
    const torch::NoGradGuard constant;
    for (const OpId op : updates_) {
      const Tensor& leaf = leaves.at(graph_.inputs(op)[0]);
      gradients_[op] = leaf.grad().defined() ? leaf.grad() : torch::zeros_like(leaf);
      update(op);
    }
    return loss.item<double>();
  }

  const Tensor& gradient(OpId update) const { return gradients_.at(update); }
  const Tensor& parameter(OpId update) const { return values_.at(graph_.inputs(update)[0]); }
  const std::vector<OpId>& updates() const { return updates_; }

 private:
  static OpTarget wide() {
    return {.real = torch::kDouble, .narrow = torch::kDouble, .seed = kTrainingSeed};
  }

  // As torch.optim.SGD and torch.optim.Adam.
  void update(OpId op) {
    const std::string_view type = graph_.type(op);
    Tensor& weight = values_.at(graph_.inputs(op)[0]);
    const Tensor& gradient = gradients_.at(op);
    const double rate =
        graph_.attributes(op).real("learning_rate", type == "AdamUpdate" ? 1e-3 : 0.01);
    if (type == "SgdUpdate") {
      weight = weight - rate * gradient;
    } else if (type == "MomentumUpdate") {
      Tensor& sum = first_[op];
      sum = sum.defined() ? 0.9 * sum + gradient : gradient.clone();
      weight = weight - rate * sum;
    } else {
      ASSERT_EQ(type, "AdamUpdate");
      adam(op, weight, gradient, rate);
    }
  }

  void adam(OpId op, Tensor& weight, const Tensor& gradient, double rate) {
    Tensor& mean = first_[op];
    Tensor& square = second_[op];
    if (!mean.defined()) {
      mean = torch::zeros_like(weight);
      square = torch::zeros_like(weight);
    }
    const auto times = static_cast<double>(num_steps_);
    mean = 0.9 * mean + 0.1 * gradient;
    square = 0.999 * square + 0.001 * gradient * gradient;
    const Tensor corrected = mean / (1 - std::pow(0.9, times));
    const Tensor size = (square / (1 - std::pow(0.999, times))).sqrt();
    weight = weight - rate * corrected / (size + 1e-8);
  }

  const Graph& graph_;
  std::vector<OpId> updates_;
  std::map<TensorId, Tensor> values_;  // of sources
  std::map<OpId, Tensor> gradients_, first_, second_;
  std::int64_t num_steps_ = 0;
};

double largest(const Tensor& tensor) {
  return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>();
}

// Numbers that are zero but for rounding are compared with what others are like. Norms over the few
// values of small images make a step's rounding ten times as large in the next.
void expect_close(const Tensor& found, const Tensor& expected, double usual,
                  const std::string& what) {
  ASSERT_TRUE(found.defined()) << what;
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  const double size = std::max(largest(expected), usual);
  EXPECT_LE(largest(found - expected), 1e-8 * size) << what << ", up to " << size;
}

class TrainingReference : public ::testing::TestWithParam<const char*> {};

TEST_P(TrainingReference, agrees_with_executed_steps) {
  const auto graph = std::make_shared<const Graph>(zoo::build_model(GetParam()));
  Reference reference(*graph);
  Machine machine(shared_core_cluster(1), {});
  StepProgram program(
      machine, graph, Placement(graph->num_ops(), 0),
      {.seed = kTrainingSeed, .numbers = Numbers::kFloat64},
      training_sources(kTrainingSeed,
                       {.real = torch::kDouble, .narrow = torch::kDouble, .seed = kTrainingSeed}));
  std::vector<Tensor> results;
  program.watch(&results);
  for (int step = 0; step < kTrainedSteps; ++step) {
    const double loss = reference.step();
    const StepRecord record = program.step();
    ASSERT_FALSE(record.failure) << record.failure->text;
    ASSERT_TRUE(record.loss && std::isfinite(loss));
    EXPECT_NEAR(*record.loss, loss, 1e-9 * std::abs(loss));
    double usual = 0;
    for (const OpId op : reference.updates()) {
      usual = std::max(usual, 1e-3 * largest(reference.gradient(op)));
    }
    ASSERT_GT(usual, 0);
    for (const OpId op : reference.updates()) {
      const std::string what = fmt::format("{} in step {}", graph->op_name(op), step + 1);
      const auto inputs = graph->inputs(op);
      expect_close(results[inputs[1]], reference.gradient(op), usual, "gradient of " + what);
      expect_close(program.source(inputs[0]), reference.parameter(op), 1e-3, what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Small, TrainingReference,
    ::testing::Values("resnet-50:batch=4,image=64,optimizer=momentum",
                      "bert-base:batch=2,sequence=4,layers=2,hidden=8,heads=2,vocabulary=17,"
                      "positions=8,optimizer=adam",
                      "gnmt-2:batch=2,hidden=8,sequence=3,vocabulary=11,optimizer=adam",
                      "inception-v3:batch=2,image=75,optimizer=sgd"),
    [](const auto& test) { return name_of_model(test.param); });

}  // namespace
}  // namespace emplace::exec
