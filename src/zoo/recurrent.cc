#include "zoo/recurrent.h"

#include <utility>

namespace emplace::zoo {
namespace {

// [n, length] as one [n] for each step.
Values steps_of(Net& net, const Value& words) {
  Values steps = split_evenly(net, words, words.dim(1), 1);
  for (Value& step : steps) step = squeeze(net, step, 1);
  return steps;
}

}  // namespace

Value zeros(Net& net, const Shape& shape) {
  return expand(net, net.scalar(0), shape);
}

WordVectors::WordVectors(Net& net, std::string name, std::int64_t rows, std::int64_t width,
                         const Value& words)
    : name_(std::move(name)) {
  const auto scope = net.scope(name_);
  table_ = net.parameter("weight", {rows, width});
  words_ = steps_of(net, words);
}

Value WordVectors::step(Net& net, std::int64_t step) const {
  const auto scope = net.scope(name_);
  const auto step_scope = net.scope("step", step);
  return gather(net, table_, words_.at(static_cast<std::size_t>(step)));
}

LstmLayer::LstmLayer(Net& net, std::string name, std::int64_t in, std::int64_t hidden)
    : name_(std::move(name)), weights_(lstm_weights(net, name_, in, hidden)) {}

Value LstmLayer::step(Net& net, const Values& inputs, std::int64_t step, bool residual) {
  const auto scope = net.scope(name_);
  if (!state_) {
    const Value nothing = zeros(net, {inputs.at(0).dim(0), weights_.hidden.dim(1)});
    state_ = {.hidden = nothing, .cell = nothing};
  }
  const auto step_scope = net.scope("step", step);
  state_ = lstm_step(net, concat(net, inputs, 1), *state_, weights_);
  return residual ? add(net, state_->hidden, inputs[0]) : state_->hidden;
}

WordClassifier::WordClassifier(Net& net, std::string name, std::int64_t in, std::int64_t words,
                               Value labels)
    : name_(std::move(name)), labels_(std::move(labels)) {
  const auto scope = net.scope(name_);
  weight_ = net.parameter("weight", {words, in});
  bias_ = net.parameter("bias", {words});
}

WordClassifier::WordClassifier(std::string name, const WordVectors& tied, Value labels)
    : name_(std::move(name)), weight_(tied.table()), labels_(std::move(labels)) {}

void WordClassifier::step(Net& net, const Value& x, std::int64_t step) {
  const auto scope = net.scope(name_);
  if (labels_of_step_.empty()) labels_of_step_ = steps_of(net, labels_);
  const auto step_scope = net.scope("step", step);
  const Value& labels = labels_of_step_.at(static_cast<std::size_t>(step));
  losses_.push_back(cross_entropy(net, gemm(net, x, weight_, bias_), labels));
}

Value WordClassifier::total(Net& net) const {
  const auto scope = net.scope("loss");
  return sum(net, losses_);
}

}  // namespace emplace::zoo
