// What a training step has beside gradients, and ops that make tensors from nothing but shapes.
#include <limits>

#include "base/error.h"

#include "exec/kernel.h"
#include "exec/random.h"

namespace emplace::exec {
namespace {

// As a last input or an attribute says, else by whether there is a backward pass.
bool is_off(const Call& call) {
  const Tensor& last = call.in(call.inputs.size() - 1);
  const bool told = call.inputs.size() > 1 && last.scalar_type() == torch::kBool;
  const bool training =
      told ? last.item<bool>() : call.integer("training_mode", call.training ? 1 : 0) != 0;
  return call.outputs.size() < 2 || !training;
}

// Without a mask, or told not to, it does nothing, as in inference.
Tensors dropout(const Call& call) {
  const Tensor& x = call.in(0);
  if (is_off(call)) return {x, torch::ones_like(x, torch::kBool)};
  if (shape_of(x) != call.shape()) fail_input("makes a tensor of another shape than its input's");
  const double ratio = dropout_ratio(call);
  Tensor y;
  Tensor mask;
  Chance(call, call.shape(), ratio).apply(call.stream, x, y, mask);
  return {y, mask};
}

// The attribute's number, in the output's shape.
Tensor filled(const Call& call) {
  double value = call.real("value", 0);
  if (call.attributes.text("value") == "nan") value = std::numeric_limits<double>::quiet_NaN();
  if (const auto values = call.integers("value"); !values.empty()) {
    value = static_cast<double>(values[0]);
  } else if (const auto* found = call.attributes.find("value")) {
    if (const auto* reals = std::get_if<std::vector<double>>(found)) value = reals->at(0);
  }
  return torch::full(call.shape(), value, call.floating);
}

Tensor training_shape_of(const Call& call) {
  const auto sizes = call.in(0).sizes();
  Tensor shape =
      torch::tensor(Integers(sizes.begin(), sizes.end()), torch::kLong).to(call.floating.device());
  const std::int64_t end = call.integer("end", call.in(0).dim());
  return shape.slice(0, call.integer("start", 0), end);
}

Tensor range(const Call& call) {
  const Tensor count = torch::arange(call.shape().at(0), call.in(0).options());
  return call.in(0) + count * call.in(2);
}

Tensor eye(const Call& call) {
  const Shape& shape = call.shape();
  const Tensor ones = torch::ones(shape, call.floating);
  const std::int64_t k = call.integer("k", 0);
  return ones.triu(k).tril(k);
}

}  // namespace

double dropout_ratio(const Call& call) {
  if (call.given("ratio")) return call.real("ratio", 0.5);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    const Tensor& input = call.in(i);
    const bool number = input.defined() && input.is_floating_point() && input.numel() == 1;
    if (number) return input.item<double>();
  }
  return 0.5;
}

void add_training(KernelTable& table) {
  table["Dropout"] = dropout;
  table["OnesLike"] = single([](const Call& call) { return torch::ones_like(call.in(0)); });
  table["ConstantOfShape"] = single(filled);
  table["Shape"] = single(training_shape_of);
  table["Size"] = single([](const Call& call) {
    return torch::scalar_tensor(call.in(0).numel(), call.floating.dtype(torch::kLong));
  });
  table["Range"] = single(range);
  table["EyeLike"] = single(eye);
}

}  // namespace emplace::exec
