// Convolutions in any number of dimensions, and their gradients.
#include "base/error.h"

#include "exec/derive.h"
#include "exec/window.h"

namespace emplace::exec {
namespace {

Shape shape_of(const Tensor& x) {
  return {x.sizes().begin(), x.sizes().end()};
}

Integers kernel_of(const Tensor& weight) {
  return {weight.sizes().begin() + 2, weight.sizes().end()};
}

Tensor with_bias(const Tensor& y, const Call& call) {
  return call.has(2) ? y + per_channel(call.in(2), y.dim()) : y;
}

Tensor conv(const Call& call) {
  const Tensor& x = call.in(0);
  const Tensor& weight = call.in(1);
  const Window window = window_of(call, kernel_of(weight), shape_of(x), call.shape());
  const Integers none(window.dims(), 0);
  const Tensor padded = pad_spatial(x, window.begin, window.end, 0);
  const Tensor y = at::convolution(padded, weight, {}, window.strides, none, window.dilations,
                                   false, none, call.integer("group", 1));
  return with_bias(y, call);
}

// Where the output begins in what the kernel reaches from all of the input.
std::int64_t transposed_begin(const Call& call, std::size_t dim, std::int64_t excess) {
  const std::string_view automatic = call.attributes.text("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER") return excess / 2;
  if (automatic == "SAME_LOWER" || call.given("output_shape")) return excess - excess / 2;
  const Integers pads = call.integers("pads");
  return automatic == "VALID" || pads.empty() ? 0 : pads.at(dim);
}

// The output's extent decides what is cut off or (output_padding) added behind.
Tensor transposed_conv(const Call& call) {
  const Tensor& x = call.in(0);
  const Tensor& weight = call.in(1);
  const Window window = window_of(call, kernel_of(weight), call.shape(), shape_of(x));
  const Integers none(window.dims(), 0);
  const Tensor all = at::convolution(x, weight, {}, window.strides, none, window.dilations, true,
                                     none, call.integer("group", 1));
  Integers output_padding = call.integers("output_padding");
  output_padding.resize(window.dims(), 0);
  Integers begin;
  Integers end;
  for (std::size_t i = 0; i < window.dims(); ++i) {
    const std::int64_t reached = all.size(static_cast<std::int64_t>(i) + 2);
    const std::int64_t extent = call.shape()[i + 2];
    begin.push_back(-transposed_begin(call, i, reached + output_padding[i] - extent));
    end.push_back(extent - reached - begin.back());
  }
  return with_bias(pad_spatial(all, begin, end, 0), call);
}

// From dy and the other operand; the op is linear in its own.
Kernel gradient_kernel(Tensor (*function)(const Call&), std::size_t target) {
  return [function, target](const Call& gradient) {
    Call call{.type = gradient.type, .attributes = gradient.attributes};
    const Tensor own = zeros(gradient.shape());
    call.inputs = target == 0 ? Tensors{own, gradient.in(1)} : Tensors{gradient.in(1), own};
    call.outputs = {tensor_type(shape_of(gradient.in(0)), DType::kFloat64)};
    return gradients_of(single(function), call, {target}, gradient.inputs, {0});
  };
}

}  // namespace

void add_convolutions(KernelTable& table) {
  table["Conv"] = single(conv);
  table["ConvInputGrad"] = gradient_kernel(conv, 0);
  table["ConvWeightGrad"] = gradient_kernel(conv, 1);
  table["ConvTranspose"] = single(transposed_conv);
  table["ConvTransposeInputGrad"] = gradient_kernel(transposed_conv, 0);
  table["ConvTransposeWeightGrad"] = gradient_kernel(transposed_conv, 1);
}

}  // namespace emplace::exec
