// Folding of the operators that move elements: Shape, Gather, Slice, Transpose, Reshape, Concat,
// ...
//
// Each follows the operator's definition in ONNX exactly, or returns nothing: contents that are
// wrong would become wrong shapes, while contents that are not known are merely not known. Tensors
// have at most SmallTensor::kMaxElements elements, which bounds the work of every function; results
// that would be larger are not known.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "io/onnx_fold_call.h"

namespace emplace::onnx_fold {
namespace {

using onnx::TensorProto;

// -1 when out of range.
std::int64_t normal_axis(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < 0) axis += size;
  return axis >= 0 && axis < size ? axis : -1;
}

bool is_small(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](std::int64_t d) { return d >= 0; }) &&
         count_elements(dims) <= SmallTensor::kMaxElements;
}

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// A tensor of `dims` whose element at each index is that of `from` at offset + sum(index * stride).
SmallTensor gather_strided(const SmallTensor& from, const Dims& dims, std::int64_t offset,
                           const Dims& strides) {
  SmallTensor to{.elem_type = from.elem_type, .dims = dims};
  const std::int64_t count = count_elements(dims);
  Dims index(dims.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = std::inner_product(index.begin(), index.end(), strides.begin(), offset);
    to.values.push_back(from.values[static_cast<std::size_t>(at)]);
    for (std::size_t k = dims.size(); k-- > 0;) {
      if (++index[k] < dims[k]) break;
      index[k] = 0;
    }
  }
  return to;
}

// Start and length of start:end:step on an axis of `size`, as ONNX defines Slice.
struct Cut {
  std::int64_t start;
  std::int64_t length;
};

Cut cut_axis(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t size) {
  if (start < 0) start = saturating_add(start, size);
  if (end < 0) end = saturating_add(end, size);
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? size : size - 1;
  start = std::clamp(start, std::int64_t{0}, high);
  end = std::clamp(end, low, high);
  const std::int64_t span = step > 0 ? end - start : start - end;
  const std::int64_t stride = step > 0 ? step : -step;
  return {start, span <= 0 ? 0 : (span - 1) / stride + 1};
}

}  // namespace

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  if (!is_small(result)) return std::nullopt;
  return result;
}

SmallTensor expand_to(const SmallTensor& tensor, const Dims& dims) {
  const Dims own = strides_of(tensor.dims);
  Dims strides(dims.size(), 0);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (tensor.dims[i] != 1) strides[dims.size() - own.size() + i] = own[i];
  }
  return gather_strided(tensor, dims, 0, strides);
}

SmallTensor integers(const Dims& values) {
  SmallTensor tensor{.elem_type = TensorProto::INT64,
                     .dims = {static_cast<std::int64_t>(values.size())}};
  tensor.values.assign(values.begin(), values.end());
  return tensor;
}

Folded fold_shape(const Call& call) {
  const OnnxValue* value = call.input(0);
  if (value == nullptr || !value->known || value->dtype == DType::kUnknown) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(value->shape.size());
  const auto bound = [&](std::string_view name, std::int64_t otherwise) {
    const std::int64_t at = int_attribute(call.node, name, otherwise);
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = bound("start", 0);
  const std::int64_t end = std::max(start, bound("end", rank));
  return integers(Dims(value->shape.begin() + start, value->shape.begin() + end));
}

Folded fold_size(const Call& call) {
  const OnnxValue* value = call.input(0);
  if (value == nullptr || !value->known || value->dtype == DType::kUnknown) return std::nullopt;
  SmallTensor tensor = integers({count_elements(value->shape)});
  tensor.dims.clear();
  return tensor;
}

Folded fold_identity(const Call& call) {
  if (call.data(0) == nullptr) return std::nullopt;
  return *call.data(0);
}

Folded fold_cast(const Call& call) {
  if (call.data(0) == nullptr) return std::nullopt;
  SmallTensor tensor = *call.data(0);
  tensor.elem_type = static_cast<int>(int_attribute(call.node, "to", 0));
  switch (tensor.elem_type) {
    case TensorProto::FLOAT:
    case TensorProto::DOUBLE:
      break;
    case TensorProto::BOOL:
      for (auto& value : tensor.values) value = value != 0 ? 1 : 0;
      break;
    case TensorProto::INT64:
    case TensorProto::INT32:
      for (auto& value : tensor.values) value = std::trunc(value);
      break;
    default:
      return std::nullopt;
  }
  return tensor;
}

Folded fold_gather(const Call& call) {
  const SmallTensor* from = call.data(0);
  const SmallTensor* indices = call.data(1);
  if (from == nullptr || indices == nullptr) return std::nullopt;
  const std::int64_t axis = normal_axis(int_attribute(call.node, "axis", 0), from->dims.size());
  if (axis < 0) return std::nullopt;
  const auto split = from->dims.begin() + axis;
  const std::int64_t length = *split;
  const std::int64_t outer = count_elements(Dims(from->dims.begin(), split));
  const std::int64_t inner = count_elements(Dims(split + 1, from->dims.end()));
  SmallTensor to{.elem_type = from->elem_type, .dims = Dims(from->dims.begin(), split)};
  to.dims.insert(to.dims.end(), indices->dims.begin(), indices->dims.end());
  to.dims.insert(to.dims.end(), split + 1, from->dims.end());
  if (!is_small(to.dims)) return std::nullopt;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::size_t k = 0; k < indices->values.size(); ++k) {
      std::int64_t index = indices->integer(k);
      if (index < 0) index += length;
      if (index < 0 || index >= length) return std::nullopt;
      for (std::int64_t i = 0; i < inner; ++i) {
        to.values.push_back(
            from->values[static_cast<std::size_t>((o * length + index) * inner + i)]);
      }
    }
  }
  return to;
}

Folded fold_concat(const Call& call) {
  if (call.inputs.empty() || call.data(0) == nullptr) return std::nullopt;
  SmallTensor to = *call.data(0);
  const std::int64_t axis = normal_axis(int_attribute(call.node, "axis", 0), to.dims.size());
  // Shapes are put together along their only axis.
  if (axis != 0 || to.dims.size() != 1) return std::nullopt;
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    const SmallTensor* next = call.data(i);
    if (next == nullptr || next->dims.size() != 1) return std::nullopt;
    to.values.insert(to.values.end(), next->values.begin(), next->values.end());
  }
  to.dims[0] = static_cast<std::int64_t>(to.values.size());
  return is_small(to.dims) ? Folded(to) : std::nullopt;
}

Folded fold_unsqueeze(const Call& call) {
  const auto axes = call.ints(1, "axes");
  if (call.data(0) == nullptr || !axes) return std::nullopt;
  SmallTensor to = *call.data(0);
  const std::size_t rank = to.dims.size() + axes->size();
  Dims dims(rank, -1);
  for (const std::int64_t given : *axes) {
    const std::int64_t axis = normal_axis(given, rank);
    if (axis < 0 || dims[static_cast<std::size_t>(axis)] == 1) return std::nullopt;
    dims[static_cast<std::size_t>(axis)] = 1;
  }
  auto next = to.dims.begin();
  for (auto& dim : dims) {
    if (dim < 0) dim = *next++;
  }
  to.dims = dims;
  return to;
}

Folded fold_squeeze(const Call& call) {
  if (call.data(0) == nullptr) return std::nullopt;
  SmallTensor to = *call.data(0);
  std::vector<bool> drop(to.dims.size(), false);
  if (call.given(1, "axes")) {
    const auto axes = call.ints(1, "axes");
    if (!axes) return std::nullopt;
    for (const std::int64_t given : *axes) {
      const std::int64_t axis = normal_axis(given, to.dims.size());
      if (axis < 0) return std::nullopt;
      drop[static_cast<std::size_t>(axis)] = true;
    }
  } else {
    for (std::size_t i = 0; i < drop.size(); ++i) drop[i] = to.dims[i] == 1;
  }
  Dims dims;
  for (std::size_t i = 0; i < drop.size(); ++i) {
    if (!drop[i]) dims.push_back(to.dims[i]);
    if (drop[i] && to.dims[i] != 1) return std::nullopt;
  }
  to.dims = dims;
  return to;
}

Folded fold_reshape(const Call& call) {
  const auto shape = call.ints(1, "shape");
  if (call.data(0) == nullptr || !shape) return std::nullopt;
  SmallTensor to = *call.data(0);
  Dims dims = *shape;
  const bool zero_copies = int_attribute(call.node, "allowzero", 0) == 0;
  std::int64_t rest = 1;
  std::int64_t* open = nullptr;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && zero_copies && i < to.dims.size()) dims[i] = to.dims[i];
    if (dims[i] == -1 && open == nullptr) {
      open = &dims[i];
    } else {
      if (dims[i] < 0) return std::nullopt;
      rest = saturating_multiply(rest, dims[i]);
    }
  }
  const auto count = static_cast<std::int64_t>(to.values.size());
  if (open != nullptr) *open = rest > 0 && count % rest == 0 ? count / rest : -1;
  if (!is_small(dims) || count_elements(dims) != count) return std::nullopt;
  to.dims = dims;
  return to;
}

Folded fold_transpose(const Call& call) {
  const SmallTensor* from = call.data(0);
  if (from == nullptr) return std::nullopt;
  Dims order = ints_attribute(call.node, "perm");
  if (order.empty()) {
    for (std::size_t i = from->dims.size(); i-- > 0;) order.push_back(static_cast<int>(i));
  }
  if (order.size() != from->dims.size()) return std::nullopt;
  const Dims own = strides_of(from->dims);
  Dims dims, strides;
  std::vector<bool> used(order.size(), false);
  for (const std::int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(order.size())) return std::nullopt;
    const auto at = static_cast<std::size_t>(axis);
    if (used[at]) return std::nullopt;
    used[at] = true;
    dims.push_back(from->dims[at]);
    strides.push_back(own[at]);
  }
  return gather_strided(*from, dims, 0, strides);
}

Folded fold_slice(const Call& call) {
  const SmallTensor* from = call.data(0);
  const auto starts = call.ints(1, "starts");
  const auto ends = call.ints(2, "ends");
  if (from == nullptr || !starts || !ends || starts->size() != ends->size()) return std::nullopt;
  Dims axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  Dims steps(starts->size(), 1);
  if (call.given(3, "axes")) axes = call.ints(3, "axes").value_or(Dims{});
  if (call.given(4, "steps")) steps = call.ints(4, "steps").value_or(Dims{});
  if (axes.size() != starts->size() || steps.size() != starts->size()) return std::nullopt;
  Dims dims = from->dims;
  Dims strides = strides_of(dims);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = normal_axis(axes[i], dims.size());
    if (axis < 0 || steps[i] == 0 || steps[i] == std::numeric_limits<std::int64_t>::min()) {
      return std::nullopt;
    }
    const auto at = static_cast<std::size_t>(axis);
    if (dims[at] == 0) continue;
    const Cut cut = cut_axis((*starts)[i], (*ends)[i], steps[i], dims[at]);
    offset += cut.start * strides[at];
    dims[at] = cut.length;
    // A step beyond the axis is never taken; clamped so that nothing overflows.
    strides[at] *= std::clamp(steps[i], -from->dims[at], from->dims[at]);
  }
  return gather_strided(*from, dims, offset, strides);
}

Folded fold_where(const Call& call) {
  const SmallTensor* condition = call.data(0);
  const SmallTensor* yes = call.data(1);
  const SmallTensor* no = call.data(2);
  if (condition == nullptr || yes == nullptr || no == nullptr) return std::nullopt;
  const auto part = broadcast(yes->dims, no->dims);
  if (!part) return std::nullopt;
  const auto dims = broadcast(condition->dims, *part);
  if (!dims) return std::nullopt;
  const SmallTensor choice = expand_to(*condition, *dims);
  const SmallTensor other = expand_to(*no, *dims);
  SmallTensor to = expand_to(*yes, *dims);
  for (std::size_t i = 0; i < to.values.size(); ++i) {
    if (choice.values[i] == 0) to.values[i] = other.values[i];
  }
  return to;
}

Folded fold_range(const Call& call) {
  const SmallTensor* start = call.data(0);
  const SmallTensor* limit = call.data(1);
  const SmallTensor* delta = call.data(2);
  for (const SmallTensor* bound : {start, limit, delta}) {
    if (bound == nullptr || bound->values.size() != 1) return std::nullopt;
  }
  if (delta->values[0] == 0) return std::nullopt;
  const long double count = std::ceil((limit->values[0] - start->values[0]) / delta->values[0]);
  if (!(count <= static_cast<long double>(SmallTensor::kMaxElements))) return std::nullopt;
  SmallTensor to{.elem_type = start->elem_type, .dims = {0}};
  for (long double i = 0; i < count; ++i) {
    to.values.push_back(start->values[0] + i * delta->values[0]);
  }
  to.dims[0] = static_cast<std::int64_t>(to.values.size());
  return to;
}

Folded fold_constant_of_shape(const Call& call) {
  const auto dims = call.ints(0, "shape");
  if (!dims || !is_small(*dims)) return std::nullopt;
  SmallTensor to{.elem_type = TensorProto::FLOAT, .dims = *dims};
  long double value = 0;
  if (const auto* attribute = find_attribute(call.node, "value")) {
    const auto given = parse_small_tensor(attribute->t());
    if (!given || given->values.size() != 1) return std::nullopt;
    to.elem_type = given->elem_type;
    value = given->values[0];
  }
  to.values.assign(static_cast<std::size_t>(count_elements(*dims)), value);
  return to;
}

Folded fold_expand(const Call& call) {
  const auto shape = call.ints(1, "shape");
  if (call.data(0) == nullptr || !shape || !is_small(*shape)) return std::nullopt;
  const auto dims = broadcast(call.data(0)->dims, *shape);
  if (!dims) return std::nullopt;
  return expand_to(*call.data(0), *dims);
}

}  // namespace emplace::onnx_fold
