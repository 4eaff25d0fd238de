// What a training step has beside gradients, and ops that make tensors from nothing but shapes.
#include "base/rng.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

bool is_off(const Call& call) {
  const Tensor& last = call.inputs.back();
  return call.outputs.size() < 2 || (last.scalar_type() == torch::kBool && !last.item<bool>());
}

// Without a mask, or told not to, it does nothing, as in inference.
Tensors dropout(const Call& call) {
  const Tensor& x = call.in(0);
  if (is_off(call)) return {x, torch::ones_like(x, torch::kBool)};
  const double ratio = dropout_ratio(call);
  const Tensor mask = dropout_mask(call, call.shape(), ratio);
  return {masked(x, mask, ratio), mask};
}

Tensor dropout_gradient(const Call& call) {
  return masked(call.in(0), call.inputs.back(), call.real("ratio", 0.5));
}

// The attribute's number, in the output's shape.
Tensor filled(const Call& call) {
  double value = call.real("value", 0);
  if (const auto values = call.integers("value"); !values.empty()) {
    value = static_cast<double>(values[0]);
  } else if (const auto* found = call.attributes.find("value")) {
    if (const auto* reals = std::get_if<std::vector<double>>(found)) value = reals->at(0);
  }
  return torch::full(call.shape(), value, torch::kDouble);
}

Tensor training_shape_of(const Call& call) {
  const auto sizes = call.in(0).sizes();
  Tensor shape = torch::tensor(Integers(sizes.begin(), sizes.end()), torch::kLong);
  const std::int64_t end = call.integer("end", call.in(0).dim());
  return shape.slice(0, call.integer("start", 0), end);
}

Tensor range(const Call& call) {
  const Tensor count = torch::arange(call.shape().at(0), call.in(0).options());
  return call.in(0) + count * call.in(2);
}

Tensor eye(const Call& call) {
  const Shape& shape = call.shape();
  const Tensor ones = torch::ones(shape, torch::kDouble);
  const std::int64_t k = call.integer("k", 0);
  return ones.triu(k).tril(k);
}

}  // namespace

Tensor dropout_mask(const Call& call, const Shape& shape, double ratio) {
  Integers begin = call.integers("region_begin");
  Integers whole = call.integers("region_shape");
  if (begin.empty()) begin.assign(shape.size(), 0);
  if (whole.empty()) whole = shape;
  Tensor numbers = torch::zeros({}, torch::kLong);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Tensor along = torch::arange(begin.at(i), begin.at(i) + shape[i], torch::kLong);
    numbers = numbers.unsqueeze(-1) * whole.at(i) + along;
  }
  numbers = numbers.reshape(shape).contiguous();
  Tensor mask = torch::empty(shape, torch::kBool);
  const auto* number = numbers.data_ptr<std::int64_t>();
  auto* kept = mask.data_ptr<bool>();
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    const std::uint64_t chance = Rng(static_cast<std::uint64_t>(number[i])).next() % 1000;
    kept[i] = static_cast<double>(chance) >= 1000 * ratio;
  }
  return mask;
}

Tensor masked(const Tensor& x, const Tensor& mask, double ratio) {
  return ratio >= 1 ? torch::zeros_like(x) : x * mask.to(torch::kDouble) / (1 - ratio);
}

double dropout_ratio(const Call& call) {
  if (call.given("ratio")) return call.real("ratio", 0.5);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    const bool number = call.in(i).is_floating_point() && call.in(i).numel() == 1;
    if (number) return call.in(i).item<double>();
  }
  return 0.5;
}

void add_training(KernelTable& table) {
  table["Dropout"] = dropout;
  table["DropoutGrad"] = single(dropout_gradient);
  table["OnesLike"] = single([](const Call& call) { return torch::ones_like(call.in(0)); });
  table["ConstantOfShape"] = single(filled);
  table["Shape"] = single(training_shape_of);
  table["Size"] = single([](const Call& call) { return torch::tensor(call.in(0).numel()); });
  table["Range"] = single(range);
  table["EyeLike"] = single(eye);
  // Parameters change after the step, which is not computed.
  for (const char* type : {"SgdUpdate", "MomentumUpdate", "AdamUpdate"}) {
    table[type] = [](const Call&) { return Tensors{}; };
  }
}

}  // namespace emplace::exec
