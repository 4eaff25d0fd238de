// Convolutions in any number of dimensions, and their gradients. Gradient ops do not read the
// operand that they are the gradient of: libtorch wants a tensor of its shape, and looks at nothing
// else of it.
#include <algorithm>

#include "base/error.h"

#include "exec/native.h"
#include "exec/window.h"

namespace emplace::exec {
namespace {

// A convolution's numbers, as libtorch takes them.
struct Convolution {
  Frame frame;
  std::int64_t groups = 1;
  Integers none = {};

  std::array<bool, 3> only(std::size_t gradient) const { return {gradient == 0, gradient == 1}; }
};

// All but its first two dimensions.
Integers kernel_of_weight(const Shape& w) {
  if (w.size() < 2) fail_input("has a weight of {} dimensions, expected 2 or more", w.size());
  return {w.begin() + 2, w.end()};
}

Convolution convolution_of(const Site& site, const Shape& x, const Shape& w, const Shape& y) {
  const Window window = window_of(site.call, kernel_of_weight(w), x, y);
  return {.frame = frame_of(window, x, y, Rounding::kDown),
          .groups = site.call.integer("group", 1),
          .none = Integers(window.dims(), 0)};
}

Run compile_conv(const Site& site) {
  return [conv = convolution_of(site, site.in(0), site.in(1), site.out()),
          bias = site.size() > 2](OpStep& step) {
    const Window& window = conv.frame.window;
    step.outputs[0] = at::convolution(
        conv.frame.pad(step.inputs[0], 0), step.inputs[1], bias ? step.inputs[2] : Tensor(),
        window.strides, conv.frame.padding, window.dilations, false, conv.none, conv.groups);
  };
}

Tensor conv_gradient(const Convolution& conv, const Tensor& dy, const Tensor& x, const Tensor& w,
                     std::size_t which) {
  const Window& window = conv.frame.window;
  const auto all =
      at::convolution_backward(dy, x, w, c10::nullopt, window.strides, conv.frame.padding,
                               window.dilations, false, conv.none, conv.groups, conv.only(which));
  return which == 0 ? std::get<0>(all) : std::get<1>(all);
}

// From dy and W.
Run compile_conv_input_grad(const Site& site) {
  const Convolution conv = convolution_of(site, site.out(), site.in(1), site.in(0));
  return [conv, shape = conv.frame.padded(site.out())](OpStep& step) {
    const Tensor& dy = step.inputs[0];
    const Tensor dx = conv_gradient(conv, dy, scratch(shape, dy.options()), step.inputs[1], 0);
    step.outputs[0] = conv.frame.unpad(dx);
  };
}

// From dy and X.
Run compile_conv_weight_grad(const Site& site) {
  return [conv = convolution_of(site, site.in(1), site.out(), site.in(0)),
          shape = site.out()](OpStep& step) {
    const Tensor& dy = step.inputs[0];
    step.outputs[0] =
        conv_gradient(conv, dy, conv.frame.pad(step.inputs[1], 0), scratch(shape, dy.options()), 1);
  };
}

// Where the output begins in what the kernel reaches from all of the input. Where it is larger than
// that, zeros come behind.
std::int64_t transposed_begin(const Call& call, std::size_t dim, std::int64_t missing) {
  const std::int64_t excess = std::max<std::int64_t>(missing, 0);
  const std::string_view automatic = call.attributes.text("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER") return excess / 2;
  if (automatic == "SAME_LOWER" || call.given("output_shape")) return excess - excess / 2;
  const Integers pads = call.integers("pads");
  return automatic == "VALID" || pads.empty() ? 0 : pads.at(dim);
}

// All that the kernel reaches is computed; the output's extent decides what is cut off or
// (output_padding) added behind.
struct TransposedConvolution {
  Integers strides, dilations, none;
  std::int64_t groups = 1;
  Integers begin = {}, end = {};        // from all that is reached to the output
  Integers to_begin = {}, to_end = {};  // and back
};

TransposedConvolution transposed_of(const Site& site, const Shape& x, const Shape& w,
                                    const Shape& y) {
  const Window window = window_of(site.call, kernel_of_weight(w), y, x);
  TransposedConvolution result{.strides = window.strides,
                               .dilations = window.dilations,
                               .none = Integers(window.dims(), 0),
                               .groups = site.call.integer("group", 1)};
  Integers added = site.call.integers("output_padding");
  added.resize(window.dims(), 0);
  for (std::size_t i = 0; i < window.dims(); ++i) {
    const std::int64_t reached =
        (x[i + 2] - 1) * window.strides[i] + (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t begin = -transposed_begin(site.call, i, reached + added[i] - y[i + 2]);
    result.begin.push_back(begin);
    result.end.push_back(y[i + 2] - reached - begin);
    result.to_begin.push_back(-begin);
    result.to_end.push_back(-result.end.back());
  }
  return result;
}

Run compile_conv_transpose(const Site& site) {
  return [conv = transposed_of(site, site.in(0), site.in(1), site.out()),
          bias = site.size() > 2](OpStep& step) {
    const Tensor all = at::convolution(step.inputs[0], step.inputs[1], {}, conv.strides, conv.none,
                                       conv.dilations, true, conv.none, conv.groups);
    const Tensor y = pad_spatial(all, conv.begin, conv.end, 0);
    step.outputs[0] = bias ? y + per_channel(step.inputs[2], y.dim()) : y;
  };
}

Tensor transposed_gradient(const TransposedConvolution& conv, const Tensor& dy, const Tensor& x,
                           const Tensor& w, std::size_t which) {
  const auto all = at::convolution_backward(
      pad_spatial(dy, conv.to_begin, conv.to_end, 0), x, w, c10::nullopt, conv.strides, conv.none,
      conv.dilations, true, conv.none, conv.groups, {which == 0, which == 1, false});
  return which == 0 ? std::get<0>(all) : std::get<1>(all);
}

Run compile_conv_transpose_input_grad(const Site& site) {
  return [conv = transposed_of(site, site.out(), site.in(1), site.in(0)),
          shape = site.out()](OpStep& step) {
    const Tensor& dy = step.inputs[0];
    step.outputs[0] =
        transposed_gradient(conv, dy, scratch(shape, dy.options()), step.inputs[1], 0);
  };
}

Run compile_conv_transpose_weight_grad(const Site& site) {
  return [conv = transposed_of(site, site.in(1), site.out(), site.in(0)),
          shape = site.out()](OpStep& step) {
    const Tensor& dy = step.inputs[0];
    step.outputs[0] =
        transposed_gradient(conv, dy, step.inputs[1], scratch(shape, dy.options()), 1);
  };
}

}  // namespace

void add_native_convolutions(CompilerTable& table) {
  table["Conv"] = compile_conv;
  table["ConvInputGrad"] = compile_conv_input_grad;
  table["ConvWeightGrad"] = compile_conv_weight_grad;
  table["ConvTranspose"] = compile_conv_transpose;
  table["ConvTransposeInputGrad"] = compile_conv_transpose_input_grad;
  table["ConvTransposeWeightGrad"] = compile_conv_transpose_weight_grad;
}

}  // namespace emplace::exec
