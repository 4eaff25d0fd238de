// Matrix products, convolutions and pools.
//
// Linear layers multiply with a transposed view of their weights, and attention multiplies stacks
// whose examples and heads were made one dimension: products here take what the views show, so that
// weights are cut as they lie and heads stay apart.
#include <algorithm>

#include "tensor/captured/rules.h"

namespace emplace::captured {
namespace {

using Numbers = std::vector<std::int64_t>;

// A factor, which may be read with its last two dimensions swapped.
struct Factor {
  Value value;
  bool transposed = false;

  Shape batch() const { return {value.shape().begin(), value.shape().end() - 2}; }
};

bool swaps_last_two(const ViewStep& step) {
  const std::size_t rank = step.perm.size();
  if (rank < 2) return false;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (step.perm[i] != static_cast<std::int64_t>(i)) return false;
  }
  return step.perm[rank - 2] == static_cast<std::int64_t>(rank - 1);
}

void drop_transposition(Factor& factor) {
  if (factor.value.steps.empty() || !swaps_last_two(factor.value.steps.back())) return;
  factor.value.steps.pop_back();
  factor.transposed = !factor.transposed;
}

Factor factor_of(const Value& value) {
  Factor factor{value};
  drop_transposition(factor);
  return factor;
}

// Before its leading dimensions were made one; nothing where they were not.
std::optional<Factor> unmerged(Factor factor) {
  if (factor.value.steps.empty() || !factor.value.steps.back().perm.empty()) return std::nullopt;
  const Shape merged = factor.value.shape();
  factor.value.steps.pop_back();
  const Shape& shape = factor.value.shape();
  if (shape.size() < 3 || !std::equal(merged.end() - 2, merged.end(), shape.end() - 2)) {
    return std::nullopt;
  }
  drop_transposition(factor);
  return factor;
}

Attributes product_attributes(const Translation& at, const Factor& a, const Factor& b) {
  Attributes attributes;
  if (a.transposed) attributes.set("transA", std::int64_t{1});
  if (b.transposed) attributes.set("transB", std::int64_t{1});
  for (const char* name : {"alpha", "beta"}) {
    const double scale = at.attributes().real(name, 1);
    if (scale != 1) attributes.set(name, scale);
  }
  return attributes;
}

bool are_matrices(const Translation& at, std::size_t first, std::size_t rank) {
  return at.num_inputs() == first + 2 && at.num_outputs() == 1 && at.in(first).size() == rank &&
         at.in(first + 1).size() == rank;
}

Numbers numbers_of(const Translation& at, std::string_view name) {
  const auto list = at.attributes().integers(name);
  return {list.begin(), list.end()};
}

// What convolutions and pools say of their windows.
std::optional<Attributes> window_of(const Translation& at, std::size_t dimensions) {
  Attributes attributes;
  for (const char* name : {"kernel_shape", "strides", "dilations", "pads"}) {
    Numbers list = numbers_of(at, name);
    const std::size_t wanted = (std::string_view(name) == "pads" ? 2 : 1) * dimensions;
    // One number stands for all dimensions.
    if (list.size() * dimensions == wanted) {
      Numbers all;
      for (std::size_t i = 0; i < dimensions; ++i) all.insert(all.end(), list.begin(), list.end());
      list = std::move(all);
    }
    if (!list.empty() && list.size() != wanted) return std::nullopt;
    if (!list.empty()) attributes.set(name, std::move(list));
  }
  return attributes;
}

std::optional<Attributes> convolution_attributes(const Translation& at, std::size_t rank) {
  if (rank < 3 || !at.given("strides") || !at.given("pads")) return std::nullopt;
  auto attributes = window_of(at, rank - 2);
  if (!attributes) return std::nullopt;
  attributes->set("group", at.integer("group", 1));
  const Numbers extra = numbers_of(at, "output_padding");
  if (at.integer("transposed", 0) != 0 && !extra.empty()) attributes->set("output_padding", extra);
  return attributes;
}

std::string_view convolution_type(const Translation& at) {
  return at.integer("transposed", 0) != 0 ? "ConvTranspose" : "Conv";
}

// Strides are the window's where PyTorch leaves them out.
std::optional<Attributes> pool_attributes(const Translation& at, std::size_t dimensions) {
  auto attributes = window_of(at, dimensions);
  if (!attributes || !at.given("kernel_shape")) return std::nullopt;
  if (!at.given("strides") || numbers_of(at, "strides").empty()) {
    attributes->set("strides", *attributes->find("kernel_shape"));
  }
  if (at.integer("ceil_mode", 0) != 0) attributes->set("ceil_mode", std::int64_t{1});
  return attributes;
}

}  // namespace

bool matrix_product(Translation& at, std::string_view) {
  if (!are_matrices(at, 0, 2)) return false;
  const Factor a = factor_of(at.value(0));
  const Factor b = factor_of(at.value(1));
  at.replace("Gemm", {at.take(a.value), at.take(b.value)}, product_attributes(at, a, b));
  return true;
}

bool matrix_product_plus(Translation& at, std::string_view) {
  if (!are_matrices(at, 1, 2)) return false;
  const Factor a = factor_of(at.value(1));
  const Factor b = factor_of(at.value(2));
  at.replace("Gemm", {at.take(a.value), at.take(b.value), at.take(0)},
             product_attributes(at, a, b));
  return true;
}

namespace {

// The product of stacks; in more dimensions where both had more before.
Value stacked_product(Translation& at, std::size_t first, const Shape& shape) {
  Factor a = factor_of(at.value(first));
  Factor b = factor_of(at.value(first + 1));
  const auto more_a = unmerged(a);
  const auto more_b = unmerged(b);
  if (more_a && more_b && more_a->batch() == more_b->batch()) {
    a = *more_a;
    b = *more_b;
  }
  Attributes attributes;
  if (a.transposed) attributes.set("transA", std::int64_t{1});
  if (b.transposed) attributes.set("transB", std::int64_t{1});
  const double alpha = at.attributes().real("alpha", 1);
  if (alpha != 1) attributes.set("alpha", alpha);
  Shape full = a.batch();
  full.insert(full.end(), shape.end() - 2, shape.end());
  const TensorId product = at.product({at.take(a.value), at.take(b.value)}, full, attributes);
  return at.reshaped({.root = product, .root_shape = full}, shape);
}

}  // namespace

bool batched_product(Translation& at, std::string_view) {
  if (!are_matrices(at, 0, 3)) return false;
  at.set(0, stacked_product(at, 0, at.out()));
  return true;
}

// What is added may be left out, by a factor of zero.
bool batched_product_plus(Translation& at, std::string_view) {
  const double beta = at.attributes().real("beta", 1);
  if (!are_matrices(at, 1, 3) || (beta != 0 && beta != 1)) return false;
  const Value product = stacked_product(at, 1, at.out());
  if (beta == 0) {
    at.set(0, product);
    return true;
  }
  const TensorId sum = at.add("sum", "Add", {at.take(product), at.operand(0)},
                              TensorSpec{.shape = at.out(), .dtype = at.out_type()});
  at.set(0, {.root = sum, .root_shape = at.out()});
  return true;
}

bool convolution(Translation& at, std::string_view) {
  if (at.num_inputs() < 2 || at.num_outputs() != 1) return false;
  auto attributes = convolution_attributes(at, at.in(0).size());
  if (!attributes) return false;
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < at.num_inputs(); ++i) inputs.push_back(at.take(i));
  at.replace(convolution_type(at), std::move(inputs), std::move(*attributes));
  return true;
}

// Inputs: dY, X, W. Outputs: those of dX, dW and the bias's gradient that are asked for.
bool convolution_gradient(Translation& at, std::string_view) {
  if (at.num_inputs() != 3 || at.num_outputs() == 0) return false;
  const auto attributes = convolution_attributes(at, at.in(0).size());
  const auto wanted = at.wanted_of_three();
  if (!attributes || !wanted) return false;
  const auto products = std::count_if(wanted->begin(), wanted->end(), [](auto i) { return i < 2; });
  const TensorId dy = at.take(0);
  const std::string type(convolution_type(at));
  for (std::size_t i = 0; i < wanted->size(); ++i) {
    const double share = 1.0 / static_cast<double>(std::max<std::ptrdiff_t>(products, 1));
    if ((*wanted)[i] == 0) {
      at.emit(type + "InputGrad", {dy, at.take(2)}, {i}, *attributes, {"input", share});
    } else if ((*wanted)[i] == 1) {
      at.emit(type + "WeightGrad", {dy, at.take(1)}, {i}, *attributes, {"weight", share});
    } else {
      Numbers axes{0};
      for (std::size_t d = 2; d < at.in(0).size(); ++d)
        axes.push_back(static_cast<std::int64_t>(d));
      const TensorId sum =
          at.add("bias", "ReduceSum", {dy}, TensorSpec{.shape = at.out(i), .dtype = at.out_type(i)},
                 {{"axes", std::move(axes)}, {"keepdims", std::int64_t{0}}});
      at.set(i, {.root = sum, .root_shape = at.out(i)});
    }
  }
  return true;
}

// Of its outputs the places of the largest elements are for the gradient alone, which finds them
// again.
bool max_pool(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() < 1 || at.in(0).size() < 3) return false;
  auto attributes = pool_attributes(at, at.in(0).size() - 2);
  if (!attributes) return false;
  at.emit("MaxPool", {at.take(0)}, {0}, std::move(*attributes));
  return true;
}

// Inputs: dY, X, the places.
bool max_pool_gradient(Translation& at, std::string_view) {
  if (at.num_inputs() != 3 || at.num_outputs() != 1 || at.in(0).size() < 3) return false;
  auto attributes = pool_attributes(at, at.in(0).size() - 2);
  if (!attributes) return false;
  const TensorId pooled = at.take(at.first_output_of_producer(2));
  at.replace("MaxPoolGrad", {at.take(0), at.take(1), pooled}, std::move(*attributes));
  return true;
}

// Also its gradient, whose inputs are dY and X.
bool average_pool(Translation& at, std::string_view onnx) {
  if (at.num_inputs() == 0 || at.num_outputs() != 1 || at.in(0).size() < 3 ||
      at.given("divisor_override")) {
    return false;
  }
  auto attributes = pool_attributes(at, at.in(0).size() - 2);
  if (!attributes) return false;
  attributes->set("count_include_pad", at.integer("count_include_pad", 1));
  at.replace(onnx, {at.take(0)}, std::move(*attributes));
  return true;
}

// Of images to single pixels, and its gradient.
bool global_pool(Translation& at, std::string_view onnx) {
  if (at.num_inputs() == 0 || at.num_outputs() != 1) return false;
  const Shape pixels = onnx.ends_with("Grad") ? at.in(0) : at.out();
  const bool single = pixels.size() > 2 && std::all_of(pixels.begin() + 2, pixels.end(),
                                                       [](std::int64_t size) { return size == 1; });
  if (!single) return false;
  at.replace(onnx, {at.take(0)});
  return true;
}

}  // namespace emplace::captured
