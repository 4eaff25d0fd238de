// What a learner's steps from samples are compared with: the gradient of the expected cost, from
// all sequences of decisions.
#pragma once

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "learn/learners/learner.h"
#include "learn/policies/policy.h"
#include "learn/train/costs.h"

namespace emplace::learn {

inline torch::Tensor flat(const std::vector<torch::Tensor>& parts) {
  std::vector<torch::Tensor> all;
  for (const torch::Tensor& part : parts) all.push_back(part.detach().reshape(-1));
  return torch::cat(all).to(torch::kFloat64);
}

inline std::vector<torch::Tensor> values_of(const Policy& policy) {
  std::vector<torch::Tensor> values;
  for (const torch::Tensor& parameter : policy.parameters().tensors()) {
    values.push_back(parameter.detach().clone());
  }
  return values;
}

inline std::vector<SampleOutcome> outcomes_of(const Policy& policy, const Problem& problem,
                                              const Samples& samples) {
  Evaluator evaluator(std::make_shared<const Simulator>(
      std::shared_ptr<const Problem>(std::shared_ptr<void>(), &problem)));
  std::vector<SampleOutcome> outcomes;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    const Evaluation value = evaluator.evaluate(policy.placement(samples, i));
    outcomes.push_back({value.step, value.overflow, true});
  }
  return outcomes;
}

// What an update takes off the parameters, by its rate; they are as before afterwards.
inline std::vector<torch::Tensor> step_of(Policy& policy, const Problem& problem, Learner& learner,
                                          const Samples& samples, double rate) {
  std::promise<std::vector<SampleOutcome>> promise;
  promise.set_value(outcomes_of(policy, problem, samples));
  PendingOutcomes pending(promise.get_future());
  std::vector<torch::Tensor> step = values_of(policy);
  learner.update(policy, samples, pending, 2);
  const torch::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < step.size(); ++i) {
    torch::Tensor parameter = policy.parameters().tensors()[i];
    const torch::Tensor before = step[i].clone();
    step[i] = (before - parameter) / rate;
    parameter.copy_(before);
  }
  return step;
}

// All sequences of decisions, each once, with what each costs.
struct Enumeration {
  // As `any`, a sample of the policy, was drawn.
  Enumeration(Policy& policy, const Problem& problem, const CostSettings& cost,
              const Samples& any) {
    std::vector<std::int64_t> classes;
    for (const torch::Tensor& distribution : policy.score(any).distributions) {
      classes.insert(classes.end(), static_cast<std::size_t>(distribution.size(1)),
                     distribution.size(2));
    }
    std::int64_t count = 1;
    for (const std::int64_t size : classes) count *= size;
    for (const torch::Tensor& part : any.context) {
      std::vector<std::int64_t> sizes = part.sizes().vec();
      sizes[0] = count;
      samples.context.push_back(part.expand(sizes).contiguous());
    }
    samples.actions =
        torch::empty({count, static_cast<std::int64_t>(classes.size())}, torch::kInt64);
    for (std::int64_t row = 0; row < count; ++row) {
      std::int64_t rest = row;
      for (std::size_t i = 0; i < classes.size(); ++i) {
        samples.actions[row][static_cast<std::int64_t>(i)] = rest % classes[i];
        rest /= classes[i];
      }
    }
    const Costs costs(problem, cost);
    for (const SampleOutcome& outcome : outcomes_of(policy, problem, samples)) {
      cost_of.push_back(costs(outcome));
    }
  }

  // With gradients.
  torch::Tensor expected_cost(Policy& policy) const {
    const torch::Tensor probability =
        policy.score(samples).log_probs.to(torch::kFloat64).sum(1).exp();
    EXPECT_NEAR(probability.sum().item<double>(), 1, 1e-4);
    return (probability * torch::tensor(cost_of, torch::kFloat64)).sum();
  }
  std::vector<torch::Tensor> gradient(Policy& policy) const {
    std::vector<torch::Tensor> result =
        torch::autograd::grad({expected_cost(policy)}, policy.parameters().tensors(), {}, false,
                              false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (!result[i].defined()) result[i] = torch::zeros_like(policy.parameters().tensors()[i]);
    }
    return result;
  }

  Samples samples;
  std::vector<double> cost_of;
};

// Independent estimates of gradients, and the gradients.
class Estimates {
 public:
  void add(const std::vector<torch::Tensor>& estimate, const std::vector<torch::Tensor>& exact) {
    errors_.push_back(flat(estimate) - flat(exact));
    const torch::Tensor one = flat(exact);
    exact_ = exact_.defined() ? exact_ + one : one;
  }
  // Their mean is off by no more than chance has it, and chance by no more than a part of the
  // gradient.
  void expect_unbiased(double largest_part = 0.3) const {
    const auto count = static_cast<double>(errors_.size());
    const torch::Tensor all = torch::stack(errors_);
    const torch::Tensor mean = all.mean(0);
    const double variance = (all - mean).pow(2).sum().item<double>() / (count - 1);
    const double chance = 3 * std::sqrt(variance / count);
    const double length = (exact_ / count).norm().item<double>();
    EXPECT_GT(length, 1e-6);
    EXPECT_LT(chance, largest_part * length);
    EXPECT_LT(mean.norm().item<double>(), chance);
  }

 private:
  std::vector<torch::Tensor> errors_;
  torch::Tensor exact_;
};

}  // namespace emplace::learn
