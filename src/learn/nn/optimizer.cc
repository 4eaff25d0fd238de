#include "learn/nn/optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>

#include <fmt/core.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "base/check.h"
#include "base/error.h"

namespace emplace::learn {
namespace {

// Under which key libtorch keeps what it knows of a parameter: versions differ.
template <class States>
typename States::key_type key_of(const States&, const torch::Tensor& parameter) {
  if constexpr (std::is_same_v<typename States::key_type, std::string>) {
    std::ostringstream key;
    key << parameter.unsafeGetTensorImpl();
    return key.str();
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

double norm_of(const std::vector<torch::Tensor>& gradients) {
  std::vector<torch::Tensor> norms;
  for (const torch::Tensor& gradient : gradients) norms.push_back(gradient.norm());
  return norms.empty() ? 0 : torch::stack(norms).norm().item<double>();
}

// Scales the parameters' gradients.
void clip_all(const OptimizerSettings& settings, const std::vector<torch::Tensor>& parameters,
              const std::vector<torch::Tensor>& others, const std::vector<torch::Tensor>& part) {
  const bool apart = settings.part.clip_norm > 0;
  if (settings.clip_norm > 0) {
    torch::nn::utils::clip_grad_norm_(apart ? others : parameters, settings.clip_norm);
  }
  if (apart) torch::nn::utils::clip_grad_norm_(part, settings.part.clip_norm);
}

bool is_in_part(const OptimizerSettings& settings, const std::string& name) {
  return !settings.part.prefix.empty() && name.starts_with(settings.part.prefix);
}

}  // namespace

Optimizer::Optimizer(const OptimizerSettings& settings) : settings_(settings) {}
Optimizer::~Optimizer() = default;

double Optimizer::rate_share() const {
  double share = 1;
  if (settings_.decay_steps > 0) {
    const double done =
        std::min(1.0, static_cast<double>(steps_) / static_cast<double>(settings_.decay_steps));
    share += done * (settings_.final_share - 1);
  }
  const std::int64_t stairs = (steps_ - settings_.stairs_after) / settings_.stair_steps;
  if (stairs > 0) share *= std::pow(settings_.stair_factor, static_cast<double>(stairs));
  return share;
}

double Optimizer::step(const Parameters& parameters, const std::vector<torch::Tensor>& gradients,
                       double rate_factor) {
  std::vector<bool> in_part;
  for (const auto& [name, tensor] : parameters.named()) {
    in_part.push_back(is_in_part(settings_, name));
  }
  return step(parameters.tensors(), in_part, gradients, rate_factor);
}

double Optimizer::step(const std::vector<torch::Tensor>& parameters,
                       const std::vector<torch::Tensor>& gradients, double rate_factor) {
  return step(parameters, std::vector<bool>(parameters.size()), gradients, rate_factor);
}

double Optimizer::step(const std::vector<torch::Tensor>& parameters,
                       const std::vector<bool>& in_part,
                       const std::vector<torch::Tensor>& gradients, double rate_factor) {
  begin(parameters, in_part);
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].mutable_grad() = gradients[i];
  const double norm = norm_of(gradients);
  if (std::isfinite(norm)) {  // a step along another would destroy the policy
    clip_all(settings_, parameters_, others_, part_);
    const double factor = rate_factor * rate_share();
    const double own = settings_.part.learning_rate;
    auto& groups = steps_of_->param_groups();
    groups[0].options().set_lr(factor * settings_.learning_rate);
    groups[1].options().set_lr(factor * (own > 0 ? own : settings_.learning_rate));
    steps_of_->step();
    ++steps_;
  }
  for (torch::Tensor& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
  return norm;
}

double Optimizer::clip(const OptimizerSettings& settings, const Parameters& parameters,
                       std::vector<torch::Tensor>& gradients) {
  const double norm = norm_of(gradients);
  if (!std::isfinite(norm)) return norm;
  // As libtorch has it: gradients belong to parameters.
  std::vector<torch::Tensor> all;
  std::vector<torch::Tensor> others;
  std::vector<torch::Tensor> part;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    torch::Tensor carrier = torch::empty_like(gradients[i]).requires_grad_(true);
    carrier.mutable_grad() = gradients[i];
    all.push_back(carrier);
    (is_in_part(settings, parameters.named()[i].first) ? part : others).push_back(carrier);
  }
  clip_all(settings, all, others, part);
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = all[i].grad();
  return norm;
}

void Optimizer::begin(const std::vector<torch::Tensor>& parameters,
                      const std::vector<bool>& in_part) {
  if (steps_of_ != nullptr) {
    EMPLACE_CHECK(std::equal(parameters.begin(), parameters.end(), parameters_.begin(),
                             parameters_.end(), [](const auto& a, const auto& b) {
                               return a.unsafeGetTensorImpl() == b.unsafeGetTensorImpl();
                             }));
    return;
  }
  parameters_ = parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    (in_part[i] ? part_ : others_).push_back(parameters[i]);
  }
  const std::vector<torch::optim::OptimizerParamGroup> groups{
      torch::optim::OptimizerParamGroup(others_), torch::optim::OptimizerParamGroup(part_)};
  if (settings_.adam) {
    steps_of_ = std::make_unique<torch::optim::Adam>(groups);
    if (!loaded_.mean.empty()) restore();
  } else {
    steps_of_ = std::make_unique<torch::optim::SGD>(groups, settings_.learning_rate);
  }
}

void Optimizer::restore() {
  auto& states = steps_of_->state();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (loaded_.mean.size() != parameters_.size() ||
        loaded_.mean[i].sizes() != parameters_[i].sizes() ||
        loaded_.square[i].sizes() != parameters_[i].sizes()) {
      fail_input("{}: what the optimizer remembers is not of this policy's parameters",
                 loaded_from_);
    }
    auto own = std::make_unique<torch::optim::AdamParamState>();
    own->step(steps_);
    own->exp_avg(loaded_.mean[i]);
    own->exp_avg_sq(loaded_.square[i]);
    states[key_of(states, parameters_[i])] = std::move(own);
  }
  loaded_ = {};
}

Optimizer::Moments Optimizer::moments() const {
  if (steps_of_ == nullptr) return loaded_;
  const auto& states = steps_of_->state();
  Moments result;
  for (const torch::Tensor& parameter : parameters_) {
    const auto at = states.find(key_of(states, parameter));
    if (at == states.end()) return {};  // plain steps, or none was taken yet
    const auto* own = dynamic_cast<const torch::optim::AdamParamState*>(at->second.get());
    if (own == nullptr) return {};
    result.mean.push_back(own->exp_avg());
    result.square.push_back(own->exp_avg_sq());
  }
  return result;
}

void Optimizer::restart() {
  steps_ = 0;
  steps_of_.reset();
  parameters_.clear();
  others_.clear();
  part_.clear();
  loaded_ = {};
}

void Optimizer::save(StateWriter& state, const std::string& prefix) const {
  const Moments of = moments();
  state.put(prefix + ".steps", steps_);
  state.put(prefix + ".count", static_cast<std::int64_t>(of.mean.size()));
  for (std::size_t i = 0; i < of.mean.size(); ++i) {
    state.put(fmt::format("{}.mean.{}", prefix, i), of.mean[i]);
    state.put(fmt::format("{}.square.{}", prefix, i), of.square[i]);
  }
}

void Optimizer::load(const StateReader& state, const std::string& prefix, torch::Device device) {
  restart();
  steps_ = state.count(prefix + ".steps");
  loaded_from_ = state.file_name();
  const std::int64_t count = state.count(prefix + ".count");
  for (std::int64_t i = 0; i < count; ++i) {
    loaded_.mean.push_back(state.tensor(fmt::format("{}.mean.{}", prefix, i)).to(device));
    const std::string square = fmt::format("{}.square.{}", prefix, i);
    loaded_.square.push_back(state.tensor(square).to(device));
    if ((loaded_.square.back() < 0).any().item<bool>()) state.refuse(square, "squares");
  }
}

}  // namespace emplace::learn
