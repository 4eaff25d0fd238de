#include "exec/kernel.h"

#include <algorithm>

#include "base/error.h"

#include "exec/derive.h"
#include "exec/native.h"

namespace emplace::exec {

const Tensor& Call::in(std::size_t i) const {
  if (i >= inputs.size()) fail_input("has {} inputs, expected more", inputs.size());
  return inputs[i];
}

std::optional<std::size_t> Call::place_of(std::size_t position) const {
  std::size_t before = 0;
  for (const std::int64_t omitted : integers("omitted_inputs")) {
    if (static_cast<std::size_t>(omitted) == position) return std::nullopt;
    before += static_cast<std::size_t>(omitted) < position ? 1 : 0;
  }
  return has(position - before) ? std::optional(position - before) : std::nullopt;
}

Tensor Call::given_at(std::size_t position) const {
  const auto place = place_of(position);
  return place ? inputs[*place] : Tensor();
}

bool Call::omits_output(std::size_t position) const {
  const Integers omitted = integers("omitted_outputs");
  return std::find(omitted.begin(), omitted.end(), position) != omitted.end();
}

const Shape& Call::shape(std::size_t output) const {
  if (output >= outputs.size()) fail_input("has {} outputs, expected more", outputs.size());
  return outputs[output].shape;
}

Integers Call::integers(std::string_view name) const {
  const auto found = attributes.integers(name);
  return {found.begin(), found.end()};
}

Integers Call::numbers(std::string_view name, std::size_t input) const {
  if (given(name)) return integers(name);
  return has(input) ? integers_of(inputs[input]) : Integers{};
}

std::int64_t Call::axis(std::int64_t rank, std::int64_t otherwise) const {
  return from_front(integer("axis", otherwise), rank);
}

Kernel single(Function function) {
  return [function = std::move(function)](const Call& call) { return Tensors{function(call)}; };
}

namespace {

const KernelTable& direct_kernels() {
  static const KernelTable table = [] {
    KernelTable made;
    add_elementwise(made);
    add_elementwise_gradients(made);
    add_reductions(made);
    add_products(made);
    add_pools(made);
    add_norms(made);
    add_layout(made);
    add_cutting(made);
    add_indexing(made);
    add_resizing(made);
    add_losses(made);
    add_recurrent(made);
    add_attention(made);
    add_parts(made);
    add_training(made);
    for (const auto& [type, compiler] : compiler_table()) {
      if (!can_be_derived(type)) made.try_emplace(type, kernel_of(compiler));
    }
    add_fused(made);
    return made;
  }();
  return table;
}

}  // namespace

const KernelTable& kernel_table() {
  static const KernelTable table = [] {
    KernelTable made = direct_kernels();
    add_derived_gradients(made);
    return made;
  }();
  return table;
}

bool is_derived_gradient(std::string_view type) {
  return !direct_kernels().contains(type) && kernel_table().contains(type);
}

Integers integers_of(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(torch::kCPU, torch::kLong).contiguous().flatten();
  const auto* data = flat.data_ptr<std::int64_t>();
  return {data, data + flat.numel()};
}

Shape shape_of(const Tensor& x) {
  return {x.sizes().begin(), x.sizes().end()};
}

std::int64_t from_front(std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) fail_input("there is no axis {} of {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

Integers all_axes_but(std::int64_t rank, std::initializer_list<std::int64_t> left_out) {
  Integers axes;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    if (std::find(left_out.begin(), left_out.end(), axis) == left_out.end()) axes.push_back(axis);
  }
  return axes;
}

Tensor per_channel(const Tensor& values, std::int64_t rank) {
  Integers shape(static_cast<std::size_t>(rank), 1);
  shape.at(1) = values.numel();
  return values.reshape(shape);
}

}  // namespace emplace::exec
