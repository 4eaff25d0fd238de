#include "exec/window.h"

#include <algorithm>

#include "base/error.h"

namespace emplace::exec {
namespace {

Integers or_ones(Integers given, std::size_t dims) {
  if (given.empty()) given.assign(dims, 1);
  if (given.size() != dims)
    fail_input("has {} spatial dimensions, expected {}", given.size(), dims);
  return given;
}

// How many windows libtorch finds with the same padding at both ends.
std::int64_t windows_in(const Window& window, std::size_t i, std::int64_t extent, bool ceil) {
  const std::int64_t pad = window.begin[i];
  const std::int64_t room = extent + 2 * pad - window.dilations[i] * (window.kernel[i] - 1) - 1;
  if (room < 0) return 0;
  const std::int64_t stride = window.strides[i];
  std::int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  if (ceil && (count - 1) * stride >= extent + pad) --count;
  return count;
}

bool frame_fits(const Window& window, const Shape& input, const Shape& output, bool ceil) {
  for (std::size_t i = 0; i < window.dims(); ++i) {
    if (window.begin[i] < 0 || windows_in(window, i, input[i + 2], ceil) != output[i + 2]) {
      return false;
    }
  }
  return true;
}

}  // namespace

Frame frame_of(Window window, const Shape& input, const Shape& output, Rounding rounding) {
  Frame frame{.window = std::move(window), .padding = {}};
  const Window& own = frame.window;
  // Pools take no padding beyond half a kernel.
  bool small = true;
  for (std::size_t i = 0; i < own.dims(); ++i) small = small && 2 * own.begin[i] <= own.kernel[i];
  const bool pool = rounding == Rounding::kEither;
  if ((small || !pool) && frame_fits(own, input, output, false)) {
    frame.padding = own.begin;
  } else if (small && pool && frame_fits(own, input, output, true)) {
    frame.padding = own.begin;
    frame.ceil = true;
  } else {
    frame.padding.assign(own.dims(), 0);
    frame.pads_first = true;
  }
  return frame;
}

Shape Frame::padded(const Shape& input) const {
  Shape shape = input;
  for (std::size_t i = 0; pads_first && i < window.dims(); ++i) {
    shape[i + 2] += window.begin[i] + window.end[i];
  }
  return shape;
}

Tensor Frame::pad(const Tensor& x, double value) const {
  return pads_first ? pad_spatial(x, window.begin, window.end, value) : x;
}

Tensor Frame::unpad(const Tensor& gradient) const {
  if (!pads_first) return gradient;
  Integers begin = window.begin;
  Integers end = window.end;
  for (std::int64_t& amount : begin) amount = -amount;
  for (std::int64_t& amount : end) amount = -amount;
  return pad_spatial(gradient, begin, end, 0);
}

Window window_of(const Call& call, const Integers& kernel, const Shape& input,
                 const Shape& output) {
  const std::size_t dims = kernel.size();
  if (input.size() != dims + 2 || output.size() != dims + 2) {
    fail_input("has tensors of {} and {} dimensions, expected {}", input.size(), output.size(),
               dims + 2);
  }
  for (const std::int64_t size : kernel) {
    if (size < 1) fail_input("has windows of {} elements, expected 1 or more", size);
  }
  Window window{.kernel = kernel,
                .strides = or_ones(call.integers("strides"), dims),
                .dilations = or_ones(call.integers("dilations"), dims)};
  Integers pads = call.integers("pads");
  pads.resize(2 * dims, 0);
  const std::string_view automatic = call.attributes.text("auto_pad", "NOTSET");
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t seen =
        (output[i + 2] - 1) * window.strides[i] + (kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t missing = std::max<std::int64_t>(seen - input[i + 2], 0);
    std::int64_t begin = pads[i];
    std::int64_t declared_end = pads[dims + i];
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      begin = automatic == "SAME_UPPER" ? missing / 2 : missing - missing / 2;
      declared_end = missing - begin;
    } else if (automatic == "VALID") {
      begin = declared_end = 0;
    }
    window.begin.push_back(begin);
    window.end.push_back(seen - input[i + 2] - begin);
    window.declared_end.push_back(declared_end);
  }
  return window;
}

Tensor pad_spatial(const Tensor& x, const Integers& begin, const Integers& end, double value) {
  Integers pads;  // libtorch lists them from the last dimension on
  for (std::size_t i = begin.size(); i-- > 0;) {
    pads.push_back(begin[i]);
    pads.push_back(end[i]);
  }
  const bool nothing = std::all_of(pads.begin(), pads.end(), [](auto pad) { return pad == 0; });
  return nothing ? x : at::constant_pad_nd(x, pads, value);
}

}  // namespace emplace::exec
