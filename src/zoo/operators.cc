#include "zoo/operators.h"

#include <algorithm>

#include "base/error.h"

namespace emplace::zoo {
namespace {

template <class... Args>
[[noreturn]] void misfit(const Net& net, fmt::format_string<Args...> format, Args&&... args) {
  fail_option("module '{}': {}", net.module(), fmt::format(format, std::forward<Args>(args)...));
}

std::size_t axis_of(const Net& net, const Value& x, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(x.rank());
  if (axis < -rank || axis >= rank) misfit(net, "there is no axis {} of {}", axis, rank);
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

Shape broadcast(const Net& net, std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  Shape result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      misfit(net, "shapes [{}] and [{}] do not broadcast", fmt::join(a, ", "), fmt::join(b, ", "));
    }
    result[result.size() - 1 - i] = from_a == 1 ? from_b : from_a;
  }
  return result;
}

std::vector<std::int64_t> for_each_dim(const Net& net, const std::vector<std::int64_t>& given,
                                       std::size_t dims) {
  if (given.size() == dims) return given;
  if (given.size() != 1) misfit(net, "expected 1 or {} numbers, got {}", dims, given.size());
  return std::vector<std::int64_t>(dims, given[0]);
}

// What a window sees of the spatial dimensions of x, and the attributes that say so in ONNX.
struct Window {
  Window(const Net& net, const Value& x, const ConvShape& shape, bool ceil = false) {
    if (x.rank() < 3) misfit(net, "expected [n, channels, size...], got rank {}", x.rank());
    const std::size_t dims = x.rank() - 2;
    const auto kernel = for_each_dim(net, shape.kernel, dims);
    const auto stride = for_each_dim(net, shape.stride, dims);
    const auto begin = for_each_dim(net, shape.padding, dims);
    const auto end = shape.end_padding.empty() ? begin : for_each_dim(net, shape.end_padding, dims);
    const auto dilation = for_each_dim(net, shape.dilation, dims);
    for (std::size_t i = 0; i < dims; ++i) {
      const std::int64_t seen = dilation[i] * (kernel[i] - 1) + 1;
      const std::int64_t room = x.dim(i + 2) + begin[i] + end[i] - seen;
      if (room < 0) {
        misfit(net, "a kernel of {} does not fit into {} (padded by {} and {})", seen, x.dim(i + 2),
               begin[i], end[i]);
      }
      std::int64_t steps = room / stride[i];
      // Rounded up only where the last window still begins inside of the input or its front pad.
      const bool more =
          ceil && room % stride[i] != 0 && (steps + 1) * stride[i] < x.dim(i + 2) + begin[i];
      size.push_back(steps + (more ? 2 : 1));
    }
    std::vector<std::int64_t> pads = begin;
    pads.insert(pads.end(), end.begin(), end.end());
    attributes = {{"kernel_shape", kernel}, {"strides", stride}, {"pads", pads}};
    const bool dilated =
        std::any_of(dilation.begin(), dilation.end(), [](auto d) { return d > 1; });
    if (dilated) attributes.set("dilations", dilation);
    if (ceil) attributes.set("ceil_mode", std::int64_t{1});
  }

  Shape output(std::int64_t n, std::int64_t channels) const {
    Shape shape{n, channels};
    shape.insert(shape.end(), size.begin(), size.end());
    return shape;
  }

  Shape size = {};
  Attributes attributes = {};
};

}  // namespace

Value unary(Net& net, std::string_view type, const Value& x) {
  return net.add_one(type, {x}, tensor_type(x.shape, x.dtype));
}

Value binary(Net& net, std::string_view type, const Value& a, const Value& b) {
  return net.add_one(type, {a, b}, tensor_type(broadcast(net, a.shape, b.shape), a.dtype));
}

Value sum(Net& net, const Values& values) {
  Value total = values.at(0);
  for (std::size_t i = 1; i < values.size(); ++i) total = add(net, total, values[i]);
  return total;
}

Value scale(Net& net, const Value& x, double factor) {
  return mul(net, x, net.scalar(factor));
}

Value matmul(Net& net, const Value& a, const Value& b) {
  if (a.rank() < 2 || b.rank() < 2 || a.last() != b.dim(b.rank() - 2)) {
    misfit(net, "[{}] and [{}] cannot be multiplied", fmt::join(a.shape, ", "),
           fmt::join(b.shape, ", "));
  }
  Shape shape = broadcast(net, std::span(a.shape).first(a.rank() - 2),
                          std::span(b.shape).first(b.rank() - 2));
  shape.push_back(a.dim(a.rank() - 2));
  shape.push_back(b.last());
  return net.add_one("MatMul", {a, b}, tensor_type(std::move(shape), a.dtype));
}

Value gemm(Net& net, const Value& x, const Value& w, const std::optional<Value>& bias) {
  if (x.rank() != 2 || w.rank() != 2 || x.dim(1) != w.dim(1)) {
    misfit(net, "[{}] cannot be multiplied with [{}] transposed", fmt::join(x.shape, ", "),
           fmt::join(w.shape, ", "));
  }
  Values inputs{x, w};
  if (bias) inputs.push_back(*bias);
  return net.add_one("Gemm", inputs, tensor_type({x.dim(0), w.dim(0)}, x.dtype),
                     {{"transB", std::int64_t{1}}});
}

Value reshape(Net& net, const Value& x, Shape shape) {
  std::int64_t rest = count_elements(x.shape);
  for (const std::int64_t dim : shape) rest = dim > 0 ? rest / dim : rest;
  for (std::int64_t& dim : shape) dim = dim < 0 ? rest : dim;
  if (count_elements(shape) != count_elements(x.shape)) {
    misfit(net, "[{}] cannot be reshaped to [{}]", fmt::join(x.shape, ", "),
           fmt::join(shape, ", "));
  }
  if (shape == x.shape) return x;
  const Value target = net.constant(shape);
  return net.add_one("Reshape", {x, target}, tensor_type(std::move(shape), x.dtype));
}

Value transpose(Net& net, const Value& x, const std::vector<std::int64_t>& order) {
  Shape shape;
  for (const std::int64_t axis : order) shape.push_back(x.dim(axis_of(net, x, axis)));
  return net.add_one("Transpose", {x}, tensor_type(std::move(shape), x.dtype), {{"perm", order}});
}

Value unsqueeze(Net& net, const Value& x, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(x.rank());
  if (axis < 0) axis += rank + 1;
  if (axis < 0 || axis > rank) misfit(net, "there is no place {} among {} axes", axis, rank);
  Shape shape = x.shape;
  shape.insert(shape.begin() + axis, 1);
  const Value at = net.constant({axis});
  return net.add_one("Unsqueeze", {x, at}, tensor_type(std::move(shape), x.dtype));
}

Value squeeze(Net& net, const Value& x, std::int64_t axis) {
  const std::size_t at = axis_of(net, x, axis);
  if (x.dim(at) != 1) misfit(net, "axis {} of [{}] is not 1", at, fmt::join(x.shape, ", "));
  Shape shape = x.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  const Value which = net.constant({static_cast<std::int64_t>(at)});
  return net.add_one("Squeeze", {x, which}, tensor_type(std::move(shape), x.dtype));
}

Value expand(Net& net, const Value& x, const Shape& shape) {
  const Value target = net.constant(shape);
  return net.add_one("Expand", {x, target}, tensor_type(broadcast(net, x.shape, shape), x.dtype));
}

Value concat(Net& net, const Values& values, std::int64_t axis) {
  const Value& first = values.at(0);
  if (values.size() == 1) return first;
  const std::size_t at = axis_of(net, first, axis);
  Shape shape = first.shape;
  shape[at] = 0;
  for (const Value& value : values) {
    Shape others = value.shape;
    if (others.size() == shape.size()) others[at] = first.dim(at);
    if (others != first.shape) {
      misfit(net, "[{}] and [{}] cannot be joined along axis {}", fmt::join(first.shape, ", "),
             fmt::join(value.shape, ", "), at);
    }
    shape[at] += value.dim(at);
  }
  return net.add_one("Concat", values, tensor_type(std::move(shape), first.dtype),
                     {{"axis", static_cast<std::int64_t>(at)}});
}

Values split(Net& net, const Value& x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  const std::size_t at = axis_of(net, x, axis);
  std::vector<TensorType> outputs;
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    Shape shape = x.shape;
    shape[at] = size;
    total += size;
    outputs.push_back(tensor_type(std::move(shape), x.dtype));
  }
  if (total != x.dim(at)) misfit(net, "{} is not the sum of the parts, {}", x.dim(at), total);
  const Value lengths = net.constant(sizes);
  return net.add("Split", {x, lengths}, outputs, {{"axis", static_cast<std::int64_t>(at)}});
}

Values split_evenly(Net& net, const Value& x, std::int64_t parts, std::int64_t axis) {
  const std::int64_t length = x.dim(axis_of(net, x, axis));
  if (length % parts != 0) misfit(net, "{} cannot be split into {} equal parts", length, parts);
  return split(net, x, std::vector<std::int64_t>(static_cast<std::size_t>(parts), length / parts),
               axis);
}

Value slice(Net& net, const Value& x, std::int64_t axis, std::int64_t start, std::int64_t end) {
  const std::size_t at = axis_of(net, x, axis);
  if (start < 0 || end > x.dim(at) || start >= end) {
    misfit(net, "there is no range {} to {} in {}", start, end, x.dim(at));
  }
  Shape shape = x.shape;
  shape[at] = end - start;
  const Values inputs{x, net.constant({start}), net.constant({end}),
                      net.constant({static_cast<std::int64_t>(at)})};
  return net.add_one("Slice", inputs, tensor_type(std::move(shape), x.dtype));
}

Value pad(Net& net, const Value& x, const std::vector<std::int64_t>& amounts) {
  if (amounts.size() != 2 * x.rank()) misfit(net, "expected two amounts for each axis");
  Shape shape = x.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += amounts[i] + amounts[i + x.rank()];
  return net.add_one("Pad", {x, net.constant(amounts)}, tensor_type(std::move(shape), x.dtype));
}

Value gather(Net& net, const Value& table, const Value& ids, std::int64_t axis) {
  const auto at = static_cast<std::ptrdiff_t>(axis_of(net, table, axis));
  Shape shape(table.shape.begin(), table.shape.begin() + at);
  shape.insert(shape.end(), ids.shape.begin(), ids.shape.end());
  shape.insert(shape.end(), table.shape.begin() + at + 1, table.shape.end());
  return net.add_one("Gather", {table, ids}, tensor_type(std::move(shape), table.dtype),
                     {{"axis", static_cast<std::int64_t>(at)}});
}

Value softmax(Net& net, const Value& x, std::int64_t axis) {
  return net.add_one("Softmax", {x}, tensor_type(x.shape, x.dtype),
                     {{"axis", static_cast<std::int64_t>(axis_of(net, x, axis))}});
}

Value reduce(Net& net, std::string_view type, const Value& x, std::vector<std::int64_t> axes,
             bool keep_dims) {
  std::vector<bool> gone(x.rank(), false);
  for (std::int64_t& axis : axes) {
    axis = static_cast<std::int64_t>(axis_of(net, x, axis));
    gone[static_cast<std::size_t>(axis)] = true;
  }
  Shape shape;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (!gone[i]) shape.push_back(x.dim(i));
    if (gone[i] && keep_dims) shape.push_back(1);
  }
  const auto keep = static_cast<std::int64_t>(keep_dims);
  const TensorType output = tensor_type(std::move(shape), x.dtype);
  // Of the reductions only ReduceSum takes its axes as an input in opset 17.
  if (type == "ReduceSum") {
    return net.add_one(type, {x, net.constant(axes)}, output, {{"keepdims", keep}});
  }
  return net.add_one(type, {x}, output, {{"axes", axes}, {"keepdims", keep}});
}

Value conv(Net& net, const Value& x, const Value& weight, const std::optional<Value>& bias,
           const ConvShape& shape) {
  Window window(net, x, shape);
  if (weight.rank() != x.rank() || x.dim(1) != weight.dim(1) * shape.groups ||
      weight.dim(0) % shape.groups != 0) {
    misfit(net, "{} channels do not go through weights of [{}] in {} groups", x.dim(1),
           fmt::join(weight.shape, ", "), shape.groups);
  }
  if (shape.groups > 1) window.attributes.set("group", shape.groups);
  Values inputs{x, weight};
  if (bias) inputs.push_back(*bias);
  return net.add_one("Conv", inputs, tensor_type(window.output(x.dim(0), weight.dim(0)), x.dtype),
                     window.attributes);
}

Value max_pool(Net& net, const Value& x, const ConvShape& shape, bool ceil) {
  const Window window(net, x, shape, ceil);
  return net.add_one("MaxPool", {x}, tensor_type(window.output(x.dim(0), x.dim(1)), x.dtype),
                     window.attributes);
}

Value average_pool(Net& net, const Value& x, const ConvShape& shape, bool count_padding) {
  Window window(net, x, shape);
  if (count_padding) window.attributes.set("count_include_pad", std::int64_t{1});
  return net.add_one("AveragePool", {x}, tensor_type(window.output(x.dim(0), x.dim(1)), x.dtype),
                     window.attributes);
}

Value global_average_pool(Net& net, const Value& x) {
  Shape shape{x.dim(0), x.dim(1)};
  shape.resize(x.rank(), 1);
  const Value pooled =
      net.add_one("GlobalAveragePool", {x}, tensor_type(std::move(shape), x.dtype));
  return reshape(net, pooled, {x.dim(0), x.dim(1)});
}

Value cross_entropy(Net& net, const Value& logits, const Value& labels) {
  // The log-probabilities, its second output, are what its gradient needs.
  return net.add("SoftmaxCrossEntropyLoss", {logits, labels},
                 {tensor_type({}, logits.dtype), tensor_type(logits.shape, logits.dtype)})[0];
}

}  // namespace emplace::zoo
