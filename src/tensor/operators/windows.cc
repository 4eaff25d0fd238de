// Operators that slide a window over images of any number of dimensions.
#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {
namespace {

// What an image's dimension i is read with: y x stride + k x dilation - before.
struct Windows {
  std::vector<Position> kernel, stride, dilation, before;
};

Position at(std::span<const std::int64_t> values, std::size_t i, Position otherwise) {
  return i < values.size() ? values[i] : otherwise;
}

// `kernel` are the window's extents; x and y are the image before and after.
Windows windows_of(const Attributes& attributes, const Shape& kernel, const Shape& x,
                   const Shape& y) {
  Windows windows;
  const std::string_view automatic = attributes.text("auto_pad", "NOTSET");
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const Position stride = at(attributes.integers("strides"), i, 1);
    const Position dilation = at(attributes.integers("dilations"), i, 1);
    Position before = at(attributes.integers("pads"), i, 0);
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const Position covered = (y[i + 2] - 1) * stride + (kernel[i] - 1) * dilation + 1;
      const Position total = std::max<Position>(covered - x[i + 2], 0);
      before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else if (automatic == "VALID") {
      before = 0;
    }
    windows.kernel.push_back(kernel[i]);
    windows.stride.push_back(stride);
    windows.dilation.push_back(dilation);
    windows.before.push_back(before);
  }
  return windows;
}

Shape spatial(const Shape& shape, std::size_t first = 2) {
  return {shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end()};
}

struct Sliding {
  std::vector<Index> y, k, x;
};

Sliding slide(Definition& op, const Windows& windows, const Shape& y, bool divisible) {
  Sliding sliding;
  for (std::size_t i = 0; i < windows.kernel.size(); ++i) {
    const std::string name = "y" + std::to_string(i);
    sliding.y.push_back(divisible ? op.index(name, y[i + 2]) : op.whole(name, y[i + 2]));
    sliding.k.push_back(op.whole("k" + std::to_string(i), windows.kernel[i]));
    sliding.x.push_back(sliding.y[i] * windows.stride[i] + sliding.k[i] * windows.dilation[i] -
                        windows.before[i]);
  }
  return sliding;
}

std::vector<Index> with(std::vector<Index> first, const std::vector<Index>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

// What a piece's image lacks of its windows is padding.
void pad_piece(Piece& piece, std::size_t read, std::size_t input) {
  const std::size_t dims = piece.inputs[input].size() - 2;
  std::vector<std::int64_t> pads(2 * dims);
  for (std::size_t i = 0; i < dims; ++i) {
    const Interval& wanted = piece.wanted[read][i + 2];
    const Interval& there = piece.inputs[input][i + 2];
    pads[i] = there.begin - wanted.begin;
    pads[i + dims] = wanted.end - there.end;
  }
  piece.attributes.set("pads", pads);
  piece.attributes.set("auto_pad", std::string("NOTSET"));
}

struct Convolution {
  Signature forward;  // inputs X, W and perhaps a bias
  Windows windows;
  Position groups = 1;
};

std::optional<Convolution> convolution(Signature forward) {
  if (forward.inputs.size() < 2 || forward.outputs.size() != 1) return std::nullopt;
  const Shape& x = forward.inputs[0];
  const Shape& w = forward.inputs[1];
  const Shape& y = forward.outputs[0];
  if (x.size() < 3 || w.size() != x.size() || y.size() != x.size()) return std::nullopt;
  const Position groups = forward.attributes.integer("group", 1);
  if (groups < 1 || x[1] != w[1] * groups || y[1] != w[0] || w[0] % groups != 0) {
    return std::nullopt;
  }
  Convolution result{forward, windows_of(forward.attributes, spatial(w), x, y), groups};
  return result;
}

// The first variable counts the groups.
constexpr tdl::VariableId kGroup = 0;

void set_groups(Piece& piece, Position groups) {
  if (groups > 1) piece.attributes.set("group", piece.box[kGroup].size());
}

MaybeDescription describe_window(const Convolution& conv, bool partial_sums) {
  Definition op(conv.forward);
  const Shape& w = op.input(1);
  const Index g = op.index("g", conv.groups);
  const Index b = op.index("b", op.input(0)[0]);
  const Index o = op.index("o", w[0] / conv.groups);
  const Index c = partial_sums ? op.index("c", w[1]) : op.whole("c", w[1]);
  const Sliding s = slide(op, conv.windows, op.output(0), true);
  const Index out = g * (w[0] / conv.groups) + o;
  tdl::Expression terms = op.in(0)(with({b, g * w[1] + c}, s.x)) * op.in(1)(with({out, c}, s.k));
  for (std::size_t i = 2; i < op.num_inputs(); ++i) {  // a bias, or what a fused operator adds
    const bool bias = op.input(i).size() == 1;
    terms = terms + once(bias ? op.in(i)(out) : op.in(i)(with({b, out}, s.y)));
  }
  std::vector<Index> reduced = s.k;
  if (partial_sums) reduced.push_back(c);
  op.out(0)(with({b, out}, s.y)) = sum(reduced, terms);
  op.localise([groups = conv.groups](Piece& piece) {
    pad_piece(piece, 0, 0);
    set_groups(piece, groups);
  });
  return std::move(op).done();
}

}  // namespace

MaybeDescription conv(const Signature& signature) {
  if (signature.inputs.size() > 3) return std::nullopt;
  const auto found = convolution(signature);
  if (!found) return std::nullopt;
  return describe_window(*found, true);
}

MaybeDescription fused_conv(const Signature& signature) {
  for (std::size_t i = 2; i < signature.inputs.size(); ++i) {
    const Shape& added = signature.inputs[i];
    if (added.size() != 1 && added != signature.outputs[0]) return std::nullopt;
  }
  const auto found = convolution(signature);
  if (!found) return std::nullopt;
  return describe_window(*found, false);
}

// Inputs: dY, W.
MaybeDescription conv_input_grad(const Signature& signature) {
  if (signature.inputs.size() != 2 || signature.outputs.size() != 1) return std::nullopt;
  const auto found = convolution({.type = "Conv",
                                  .attributes = signature.attributes,
                                  .inputs = {signature.outputs[0], signature.inputs[1]},
                                  .outputs = {signature.inputs[0]}});
  if (!found) return std::nullopt;
  const MaybeDescription forward = describe_window(*found, true);
  if (!forward) return std::nullopt;
  tdl::Description description = gradient_of_product(*forward, 0, {1}, signature.outputs[0]);
  // A place x of the whole is y x stride + k x dilation - before; the same in the piece's own
  // places.
  description.localise = [windows = found->windows, groups = found->groups](Piece& piece) {
    const std::size_t dims = windows.kernel.size();
    std::vector<std::int64_t> pads(2 * dims);
    for (std::size_t i = 0; i < dims; ++i) {
      const Interval& x = piece.outputs[0][i + 2];
      const Interval& y = piece.inputs[0][i + 2];
      pads[i] = windows.before[i] + x.begin - y.begin * windows.stride[i];
      const Position covered =
          (y.size() - 1) * windows.stride[i] + (windows.kernel[i] - 1) * windows.dilation[i] + 1;
      pads[i + dims] = covered - pads[i] - x.size();
    }
    piece.attributes.set("pads", pads);
    piece.attributes.set("auto_pad", std::string("NOTSET"));
    set_groups(piece, groups);
  };
  return description;
}

// Inputs: dY, X.
MaybeDescription conv_weight_grad(const Signature& signature) {
  if (signature.inputs.size() != 2 || signature.outputs.size() != 1) return std::nullopt;
  const auto found = convolution({.type = "Conv",
                                  .attributes = signature.attributes,
                                  .inputs = {signature.inputs[1], signature.outputs[0]},
                                  .outputs = {signature.inputs[0]}});
  if (!found) return std::nullopt;
  const MaybeDescription forward = describe_window(*found, true);
  if (!forward) return std::nullopt;
  tdl::Description description = gradient_of_product(*forward, 1, {0}, signature.outputs[0]);
  description.localise = [groups = found->groups](Piece& piece) {
    pad_piece(piece, 1, 1);
    set_groups(piece, groups);
  };
  return description;
}

namespace {

// Images are not cut: what reaches over an edge would be added up on both sides.
struct Transposed {
  Index g, b, o, c, out, in;
  std::vector<Index> x, y, k;
};

std::optional<Transposed> transposed(Definition& op, const Shape& x, const Shape& w,
                                     const Shape& y) {
  const Position groups = op.attributes().integer("group", 1);
  if (x.size() < 3 || w.size() != x.size() || y.size() != x.size() || groups < 1 || x[1] != w[0] ||
      y[1] != w[1] * groups || x[1] % groups != 0) {
    return std::nullopt;
  }
  Transposed t;
  t.g = op.index("g", groups);
  t.b = op.index("b", x[0]);
  t.o = op.index("o", w[1]);
  t.c = op.index("c", w[0] / groups);
  t.out = t.g * w[1] + t.o;
  t.in = t.g * (w[0] / groups) + t.c;
  for (std::size_t i = 2; i < x.size(); ++i) {
    const std::string d = std::to_string(i - 2);
    t.x.push_back(op.whole("x" + d, x[i]));
    t.y.push_back(op.whole("y" + d, y[i]));
    t.k.push_back(op.whole("k" + d, w[i]));
  }
  op.localise([groups](Piece& piece) { set_groups(piece, groups); });
  return t;
}

}  // namespace

MaybeDescription conv_transpose(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 2 || op.num_outputs() != 1) return std::nullopt;
  const auto t = transposed(op, op.input(0), op.input(1), op.output(0));
  if (!t) return std::nullopt;
  tdl::Expression terms = op.in(0)(with({t->b, t->in}, t->x)) * op.in(1)(with({t->in, t->o}, t->k));
  if (op.num_inputs() > 2) terms = terms + once(op.in(2)(t->out));
  op.out(0)(with({t->b, t->out}, t->y)) = sum({t->c}, terms);
  return std::move(op).done();
}

// Inputs: dY, W.
MaybeDescription conv_transpose_input_grad(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() != 2 || op.num_outputs() != 1) return std::nullopt;
  const auto t = transposed(op, op.output(0), op.input(1), op.input(0));
  if (!t) return std::nullopt;
  op.out(0)(with({t->b, t->in}, t->x)) =
      sum({t->o}, op.in(0)(with({t->b, t->out}, t->y)) * op.in(1)(with({t->in, t->o}, t->k)));
  return std::move(op).done();
}

// Inputs: dY, X.
MaybeDescription conv_transpose_weight_grad(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() != 2 || op.num_outputs() != 1) return std::nullopt;
  const auto t = transposed(op, op.input(1), op.output(0), op.input(0));
  if (!t) return std::nullopt;
  op.out(0)(with({t->in, t->o}, t->k)) =
      sum({t->b}, op.in(0)(with({t->b, t->out}, t->y)) * op.in(1)(with({t->b, t->in}, t->x)));
  return std::move(op).done();
}

MaybeDescription pool(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() != 1 || op.num_outputs() != 1) return std::nullopt;
  const Shape& x = op.input(0);
  const Shape& y = op.output(0);
  const auto kernel = op.attributes().integers("kernel_shape");
  if (x.size() < 3 || y.size() != x.size() || kernel.size() != x.size() - 2) return std::nullopt;
  // Windows that were added at the end count padding that is nowhere said.
  const bool uncounted = op.attributes().integer("ceil_mode", 0) != 0 &&
                         op.attributes().integer("count_include_pad", 0) != 0;
  const Windows windows = windows_of(op.attributes(), Shape(kernel.begin(), kernel.end()), x, y);
  const Index b = op.index("b", x[0]);
  const Index c = op.index("c", x[1]);
  const Sliding s = slide(op, windows, y, !uncounted);
  op.out(0)(with({b, c}, s.y)) = f(op.in(0)(with({b, c}, s.x)));
  // Images are whole then, and their padding is as it was.
  if (!uncounted) op.localise([](Piece& piece) { pad_piece(piece, 0, 0); });
  return std::move(op).done();
}

MaybeDescription by_channel(const Signature& signature) {
  Definition op(signature);
  // By places in the whole tensor, which are others in a part.
  if (signature.type == "MaxPoolGrad" && op.num_inputs() == 2) return std::nullopt;
  if (op.num_outputs() != 1 || op.output(0).size() < 3) return std::nullopt;
  const Shape& y = op.output(0);
  const Index b = op.index("b", y[0]);
  const Index c = op.index("c", y[1]);
  const auto image = [&](const Shape& shape, const std::string& name) {
    std::vector<Index> indices{b, c};
    for (std::size_t d = 2; d < shape.size(); ++d) {
      indices.push_back(op.whole(name + std::to_string(d), shape[d]));
    }
    return indices;
  };
  const std::vector<Index> written = image(y, "y");
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    const Shape& x = op.input(i);
    const bool images = x.size() == y.size() && x[0] == y[0] && x[1] == y[1];
    if (i == 0 && !images) return std::nullopt;
    value = value + (images ? op.in(i)(image(x, "x" + std::to_string(i) + "_")) : op.all_of(i));
  }
  op.out(0)(written) = value;
  return std::move(op).done();
}

}  // namespace emplace::operators
