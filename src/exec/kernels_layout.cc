// Operators that move elements without changing them.
#include <algorithm>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

Tensor reshape(const Call& call) {
  return call.in(0).reshape(call.shape());
}

Tensor expand(const Call& call) {
  return call.in(0).expand(call.shape());
}

Tensor transpose(const Call& call) {
  const Tensor& x = call.in(0);
  Integers order = call.integers("perm");
  if (order.empty()) {
    for (std::int64_t i = x.dim(); i-- > 0;) order.push_back(i);
  }
  return x.permute(order);
}

Tensor concat(const Call& call) {
  return at::cat(call.inputs, call.axis(call.in(0).dim(), 0));
}

// The outputs' shapes say how much each gets.
Tensors split(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t axis = call.axis(x.dim(), 0);
  Tensors parts;
  std::int64_t begin = 0;
  for (const TensorType& output : call.outputs) {
    const std::int64_t size = output.shape.at(static_cast<std::size_t>(axis));
    parts.push_back(x.narrow(axis, begin, size));
    begin += size;
  }
  return parts;
}

// Zeros where no gradient arrived, whose sizes the split said: in equal parts where it did not.
Tensor split_gradient(const Call& call) {
  const auto axis = call.axis(static_cast<std::int64_t>(call.shape().size()), 0);
  const std::int64_t extent = call.shape()[static_cast<std::size_t>(axis)];
  const Integers arrived = call.integers("arrived");
  const Integers sizes = call.integers("split");
  const std::int64_t even = call.in(0).size(axis);
  Tensor result = torch::zeros(call.shape(), call.in(0).options());
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    std::int64_t begin = 0;
    if (sizes.empty()) begin = even * arrived[i];
    for (std::int64_t before = 0; !sizes.empty() && before < arrived[i]; ++before) {
      begin += sizes.at(static_cast<std::size_t>(before));
    }
    const std::int64_t size = call.in(i).size(axis);
    if (begin + size > extent) fail_input("'split' does not say where part {} is", arrived[i]);
    result.narrow(axis, begin, size).copy_(call.in(i));
  }
  return result;
}

Tensor tile(const Call& call) {
  Integers repeats;
  for (std::size_t i = 0; i < call.shape().size(); ++i) {
    const std::int64_t extent = call.in(0).size(static_cast<std::int64_t>(i));
    repeats.push_back(extent == 0 ? 1 : call.shape()[i] / extent);
  }
  return call.in(0).repeat(repeats);
}

Tensor triangle(const Call& call) {
  const std::int64_t diagonal = call.has(1) ? call.in(1).item<std::int64_t>() : 0;
  return call.integer("upper", 1) != 0 ? call.in(0).triu(diagonal) : call.in(0).tril(diagonal);
}

// Each sequence's first elements in reverse order.
Tensor reverse_sequence(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t batch_axis = call.integer("batch_axis", 1);
  const std::int64_t time_axis = call.integer("time_axis", 0);
  const Integers lengths = integers_of(call.in(1));
  Tensors sequences;
  for (std::int64_t i = 0; i < x.size(batch_axis); ++i) {
    const Tensor one = x.narrow(batch_axis, i, 1);
    const std::int64_t length = lengths.at(static_cast<std::size_t>(i));
    sequences.push_back(at::cat({one.narrow(time_axis, 0, length).flip(time_axis),
                                 one.narrow(time_axis, length, x.size(time_axis) - length)},
                                time_axis));
  }
  return at::cat(sequences, batch_axis);
}

bool columns_first(const Call& call) {
  return call.attributes.text("mode", "DCR") == "CRD";
}

Tensor depth_to_space(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t block = call.integer("blocksize", 1);
  const std::int64_t channels = x.size(1) / (block * block);
  if (columns_first(call)) {
    return x.reshape({x.size(0), channels, block, block, x.size(2), x.size(3)})
        .permute({0, 1, 4, 2, 5, 3})
        .reshape(call.shape());
  }
  return x.reshape({x.size(0), block, block, channels, x.size(2), x.size(3)})
      .permute({0, 3, 4, 1, 5, 2})
      .reshape(call.shape());
}

// ONNX knows it in one mode; as the gradient of DepthToSpace it has that one's.
Tensor space_to_depth(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t block = call.integer("blocksize", 1);
  const Tensor apart =
      x.reshape({x.size(0), x.size(1), x.size(2) / block, block, x.size(3) / block, block});
  const Integers order =
      columns_first(call) ? Integers{0, 1, 3, 5, 2, 4} : Integers{0, 3, 5, 1, 2, 4};
  return apart.permute(order).reshape(call.shape());
}

}  // namespace

void add_layout(KernelTable& table) {
  for (const char* type : {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}) {
    table[type] = single(reshape);
  }
  table["Expand"] = single(expand);
  table["Transpose"] = single(transpose);
  table["Concat"] = single(concat);
  table["Split"] = split;
  table["SplitGrad"] = single(split_gradient);
  table["Tile"] = single(tile);
  table["Trilu"] = single(triangle);
  table["ReverseSequence"] = single(reverse_sequence);
  table["DepthToSpace"] = single(depth_to_space);
  table["SpaceToDepth"] = single(space_to_depth);
}

}  // namespace emplace::exec
