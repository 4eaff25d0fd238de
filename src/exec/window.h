// What convolutions and pools see of their input: windows over the spatial dimensions.
#pragma once

#include "exec/kernel.h"

namespace emplace::exec {

// By spatial dimension.
struct Window {
  Integers kernel, strides, dilations;
  Integers begin = {};         // what is added in front; negative: cut off
  Integers end = {};           // behind: what the output's extent asks for
  Integers declared_end = {};  // behind: what the attributes say, which may be less or more

  std::size_t dims() const { return kernel.size(); }
};

// Of the op's attributes, for an input and an output of these extents ([n, c, ...]). Only the front
// padding is taken from them: with the output's extent given, the rest follows, also where extents
// are rounded up, or where a piece was cut out of a larger input.
Window window_of(const Call& call, const Integers& kernel, const Shape& input, const Shape& output);

// How libtorch is given a window, which pads alike at both ends: with its padding, or with the
// input padded first.
struct Frame {
  Window window;
  Integers padding;
  bool ceil = false;  // of pools: extents are rounded up
  bool pads_first = false;

  Shape padded(const Shape& input) const;
  // What is put around it, and taken away again from its gradient.
  Tensor pad(const Tensor& x, double value) const;
  Tensor unpad(const Tensor& gradient) const;
};

enum class Rounding { kDown, kEither };
Frame frame_of(Window window, const Shape& input, const Shape& output, Rounding rounding);

// x with its spatial dimensions padded (or cut).
Tensor pad_spatial(const Tensor& x, const Integers& begin, const Integers& end, double value);

}  // namespace emplace::exec
