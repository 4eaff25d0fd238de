// Normalisations, losses, dropout and updates.
#include <algorithm>

#include "tensor/captured/rules.h"

namespace emplace::captured {
namespace {

using Numbers = std::vector<std::int64_t>;

// The first of the normalised axes, counted from the end.
std::optional<std::int64_t> normal_axis(const Translation& at) {
  const auto shape = at.attributes().integers("normalized_shape");
  if (shape.empty()) return std::nullopt;
  return -static_cast<std::int64_t>(shape.size());
}

// Which gradients a "<Type>Grad" puts out.
Attributes with_wanted(Attributes attributes, const std::vector<std::size_t>& wanted) {
  if (wanted.size() < 3) attributes.set("wanted", Numbers(wanted.begin(), wanted.end()));
  return attributes;
}

double epsilon_of(const Translation& at) {
  return at.attributes().real("epsilon", 1e-5);
}

std::optional<std::string> reduction_name(const Translation& at) {
  constexpr const char* kNames[] = {"none", "mean", "sum"};
  const std::int64_t number = at.integer("reduction", -1);
  if (number < 0 || number > 2) return std::nullopt;
  return kNames[number];
}

std::optional<Attributes> loss_attributes(const Translation& at) {
  const auto reduction = reduction_name(at);
  if (!reduction || !at.given("ignore_index")) return std::nullopt;
  return Attributes{{"reduction", *reduction}, {"ignore_index", at.integer("ignore_index", -100)}};
}

Attributes known_settings(const Translation& at) {
  Attributes settings;
  for (const char* name : {"learning_rate", "momentum", "beta1", "beta2", "epsilon", "weight_decay",
                           "decoupled_decay"}) {
    if (at.given(name)) settings.set(name, at.attributes().real(name, 0));
  }
  return settings;
}

// What our updates do not do.
bool has_other_settings(const Translation& at) {
  const auto& entries = at.attributes().entries();
  const std::size_t known = known_settings(at).entries().size();
  return entries.size() > known;
}

}  // namespace

// Inputs: X, the scale, the bias. Outputs: Y, mean and inverse deviation.
bool layer_norm(Translation& at, std::string_view) {
  const auto axis = normal_axis(at);
  if (!axis || at.num_inputs() != 3 || at.num_outputs() != 3) return false;
  at.replace("LayerNormalization", {at.take(0), at.take(1), at.take(2)},
             {{"axis", *axis}, {"epsilon", epsilon_of(at)}});
  return true;
}

// Inputs: dY, X, mean, inverse deviation, the scale, the bias.
bool layer_norm_gradient(Translation& at, std::string_view) {
  const auto axis = normal_axis(at);
  if (!axis || at.num_inputs() != 6) return false;
  const auto wanted = at.wanted_of_three();
  if (!wanted) return false;
  at.replace("LayerNormalizationGrad", {at.take(0), at.take(1), at.take(4), at.take(2), at.take(3)},
             with_wanted({{"axis", *axis}, {"epsilon", epsilon_of(at)}}, *wanted));
  return true;
}

// Inputs: X, the scale, the bias. What it puts out beside Y is for the gradient alone, which
// computes it again.
bool group_norm(Translation& at, std::string_view) {
  if (at.num_inputs() != 3 || !at.given("group")) return false;
  at.emit("GroupNormalization", {at.take(0), at.take(1), at.take(2)}, {0},
          {{"num_groups", at.integer("group", 1)}, {"epsilon", epsilon_of(at)}});
  return true;
}

// Inputs: dY, X, mean, inverse deviation, the scale. It does not say the forward op's epsilon.
bool group_norm_gradient(Translation& at, std::string_view) {
  const auto epsilon = at.number_of_producer(2, "epsilon");
  if (at.num_inputs() != 5 || !at.given("group") || !epsilon) return false;
  const auto wanted = at.wanted_of_three();
  if (!wanted) return false;
  at.replace("GroupNormalizationGrad", {at.take(0), at.take(1), at.take(4)},
             with_wanted({{"num_groups", at.integer("group", 1)}, {"epsilon", *epsilon}}, *wanted));
  return true;
}

// Inputs: X, the scale, the bias, and perhaps running mean and variance. Outputs: Y, what is kept
// for the gradient, and the new running statistics. PyTorch's momentum is the share of the new, and
// its running variance that of a sample.
bool batch_norm(Translation& at, std::string_view) {
  if (!at.given("training") || at.num_inputs() < 3) return false;
  const bool running = at.num_inputs() == 5;
  std::vector<TensorId> inputs;
  Attributes attributes{{"epsilon", epsilon_of(at)}};
  if (at.integer("training", 0) == 0) {
    if (!running || at.trains()) return false;
    for (std::size_t i = 0; i < 5; ++i) inputs.push_back(at.take(i));
    at.emit("BatchNormalization", std::move(inputs), {0}, std::move(attributes));
    return true;
  }
  const bool states = at.num_outputs() == 5;
  if (running != states || (!running && at.num_inputs() != 3)) return false;
  for (std::size_t i = 0; i < at.num_inputs(); ++i) inputs.push_back(at.take(i));
  attributes.set("training_mode", std::int64_t{1});
  if (!running) {
    at.emit("BatchNormalization", std::move(inputs), {0}, std::move(attributes));
    return true;
  }
  attributes.set("momentum", 1 - at.attributes().real("momentum", 0.1));
  attributes.set("unbiased", std::int64_t{1});
  at.emit("BatchNormalization", std::move(inputs), {0, 3, 4}, std::move(attributes));
  return true;
}

// Inputs: dY, X, the scale, perhaps running mean and variance, and what was kept.
bool batch_norm_gradient(Translation& at, std::string_view) {
  if (at.integer("train", 0) == 0 || (at.num_inputs() != 7 && at.num_inputs() != 5)) return false;
  const auto wanted = at.wanted_of_three();
  if (!wanted) return false;
  at.replace("BatchNormalizationGrad", {at.take(0), at.take(1), at.take(2)},
             with_wanted({{"epsilon", epsilon_of(at)}}, *wanted));
  return true;
}

// Inputs: log-probabilities, labels, perhaps weights. Outputs: the loss, and what it was divided
// by, which the gradient finds again.
bool likelihood_loss(Translation& at, std::string_view) {
  const auto attributes = loss_attributes(at);
  if (!attributes || at.num_inputs() < 2 || at.in(0).size() < 2 || at.num_outputs() == 0) {
    return false;
  }
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < at.num_inputs(); ++i) inputs.push_back(at.take(i));
  at.emit("NegativeLogLikelihoodLoss", std::move(inputs), {0}, *attributes);
  return true;
}

// Inputs: dY, log-probabilities, labels, perhaps weights, and what the loss was divided by.
bool likelihood_gradient(Translation& at, std::string_view) {
  const auto attributes = loss_attributes(at);
  if (!attributes || at.num_inputs() < 4 || at.in(1).size() < 2 || at.num_outputs() != 1) {
    return false;
  }
  std::vector<TensorId> inputs{at.take(0), at.take(2)};
  if (at.num_inputs() > 4) inputs.push_back(at.take(3));
  at.replace("NegativeLogLikelihoodLossGrad", std::move(inputs), *attributes);
  return true;
}

bool dropout(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 2 || !at.given("ratio") ||
      at.integer("train", 1) == 0) {
    return false;
  }
  at.replace("Dropout", {at.take(0)},
             {{"ratio", at.attributes().real("ratio", 0.5)}, {"training_mode", std::int64_t{1}}});
  return true;
}

// Inputs: dY, the mask.
bool dropout_gradient(Translation& at, std::string_view) {
  const double scale = at.attributes().real("scale", 0);
  if (at.num_inputs() != 2 || scale < 1) return false;
  at.replace("DropoutGrad", {at.take(0), at.take(1)}, {{"ratio", 1 - 1 / scale}});
  return true;
}

// One with a probability, else zero: where ones were not dropped.
bool coin_flips(Translation& at, std::string_view) {
  const double chance = at.attributes().real("p", -1);
  if (at.num_outputs() != 1 || chance <= 0 || chance > 1) return false;
  const TensorId ones = at.take({.root_shape = at.out(), .number = 1, .dtype = at.out_type()});
  const auto drawn = at.add("drawn", "Dropout", {ones},
                            std::vector<TensorSpec>{{.shape = at.out(), .dtype = at.out_type()},
                                                    {.shape = at.out(), .dtype = DType::kBool}},
                            {{"ratio", 1 - chance}, {"training_mode", std::int64_t{1}}});
  at.replace("Cast", {drawn[1]});
  return true;
}

// Inputs: the gradient and the parameter, which our updates have first.
bool update(Translation& at, std::string_view onnx) {
  if (at.num_inputs() != 2 || at.num_outputs() != 0 || at.in(0) != at.in(1)) return false;
  at.replace(onnx, {at.take(1), at.take(0)});
  return true;
}

// What the optimizer keeps is as large as the parameter, and then a tensor of its own.
bool update_with_state(Translation& at, std::string_view onnx) {
  if (at.num_inputs() != 2 || at.num_outputs() != 0 || at.in(0) != at.in(1)) return false;
  const Bytes kept = at.persistent_bytes();
  const TensorSpec state{.shape = at.in(1), .dtype = at.in_type(1)};
  const Bytes each = tensor_bytes(state.shape, state.dtype);
  const std::int64_t states = onnx == "AdamUpdate" ? 2 : kept > 0 ? 1 : 0;
  if (has_other_settings(at) || kept != states * each) return false;
  std::vector<TensorId> inputs{at.take(1), at.take(0)};
  for (std::int64_t i = 0; i < states; ++i) {
    inputs.push_back(at.add_buffer(i == 0 ? "mean" : "square", state));
  }
  at.replace(onnx == "SgdUpdate" && states > 0 ? "MomentumUpdate" : onnx, std::move(inputs),
             known_settings(at));
  return true;
}

}  // namespace emplace::captured
