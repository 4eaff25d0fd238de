#include "exec/sources.h"

#include <algorithm>
#include <limits>
#include <set>
#include <variant>

#include "base/error.h"
#include "base/limits.h"
#include "base/rng.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool is_piece(const Graph& graph, OpId op) {
  return graph.attributes(op).find("row_offset") != nullptr;
}

// How many there are of what the op takes the tensor as numbers of; of a piece of a table, up to
// where it reaches.
std::int64_t limit_of_use(const Graph& graph, OpId op, TensorId tensor) {
  const auto inputs = graph.inputs(op);
  if (inputs.size() < 2 || inputs[1] != tensor) return kNoLimit;
  const auto shape = graph.shape(inputs[0]);
  const std::string_view type = graph.type(op);
  if (is_one_of(type, {"Gather", "GatherElements", "Scatter", "ScatterElements", "ScatterND",
                       "GatherND"})) {
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t axis = from_front(graph.attributes(op).integer("axis", 0), rank);
    const std::int64_t offset = graph.attributes(op).integer("row_offset", 0);
    if (offset < 0 || offset > limits::kTensorBytes) return kNoLimit;
    return offset + shape[static_cast<std::size_t>(axis)];
  }
  if (is_one_of(type, {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"})) {
    return shape.size() > 1 ? shape[1] : kNoLimit;
  }
  return kNoLimit;
}

bool is_integer(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return true;
    default:
      return false;
  }
}

std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 0xCBF29CE484222325U ^ seed;  // FNV-1a
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  return hash;
}

}  // namespace

// The least of all uses, also of what is made from it without computing. Of the pieces of a table,
// the last counts: limits are those of the graph that was split.
std::int64_t limit_of_numbers(const Graph& graph, TensorId first) {
  std::int64_t limit = kNoLimit;
  std::int64_t last_piece = 0;
  std::set<TensorId> seen{first};
  std::vector<TensorId> open{first};
  while (!open.empty()) {
    const TensorId tensor = open.back();
    open.pop_back();
    for (const OpId op : graph.consumers(tensor)) {
      const std::int64_t own = limit_of_use(graph, op, tensor);
      if (own != kNoLimit && is_piece(graph, op)) {
        last_piece = std::max(last_piece, own);
      } else {
        limit = std::min(limit, own);
      }
      for (const TensorId output : graph.outputs(op)) {
        if (is_integer(graph.dtype(output)) && seen.insert(output).second) open.push_back(output);
      }
    }
  }
  if (last_piece > 0) limit = std::min(limit, last_piece);
  return limit == kNoLimit ? 2 : std::max<std::int64_t>(limit, 1);
}

Tensor constant_value(const Graph& graph, OpId op) {
  const Attributes& attributes = graph.attributes(op);
  const AttributeValue* value = attributes.find("value");
  if (value == nullptr) fail_input("attributes: 'value', a constant's contents, is missing");
  const auto shape = graph.shape(graph.outputs(op)[0]);
  const Shape wanted(shape.begin(), shape.end());
  if (const auto* integer = std::get_if<std::int64_t>(value))
    return torch::full(wanted, *integer, torch::kLong);
  if (const auto* real = std::get_if<double>(value))
    return torch::full(wanted, *real, torch::kDouble);
  Tensor all;
  if (const auto* reals = std::get_if<std::vector<double>>(value)) {
    all = torch::tensor(*reals, torch::kDouble);
  } else if (const auto* integers = std::get_if<Integers>(value)) {
    all = torch::tensor(*integers, torch::kLong);
  } else {
    fail_input("attributes: 'value' is no number");
  }
  // A part of a constant has the contents of the whole.
  const auto whole = attributes.integers("region_shape");
  if (whole.size() != wanted.size() || all.numel() != count_elements(whole)) {
    if (all.numel() != count_elements(wanted)) {
      fail_input("attributes: 'value' has {} numbers, expected {}", all.numel(),
                 count_elements(wanted));
    }
    return all.reshape(wanted);
  }
  Tensor part = all.reshape(Shape(whole.begin(), whole.end()));
  const auto begin = attributes.integers("region_begin");
  if (begin.size() != wanted.size()) {
    fail_input("attributes: 'region_begin' has {} numbers, expected {}", begin.size(),
               wanted.size());
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    part = part.narrow(static_cast<std::int64_t>(i), begin[i], wanted[i]);
  }
  return part.contiguous();
}

SourceValue seeded_sources(SeededNumbers numbers) {
  return [numbers](const Graph& graph, OpId op, std::size_t output) {
    if (graph.role(op) == OpRole::kConstant) return constant_value(graph, op);
    const TensorId tensor = graph.outputs(op)[output];
    const auto shape = graph.shape(tensor);
    Rng rng(hash_of(graph.op_name(op), numbers.seed + output));
    const bool floating = !is_integer(graph.dtype(tensor)) && graph.dtype(tensor) != DType::kBool;
    const bool buffer = graph.role(op) == OpRole::kBuffer;
    const double low = buffer ? 0.5 : numbers.low;
    const double high = buffer ? 1.5 : numbers.high;
    const auto limit = floating ? 1 : static_cast<std::uint64_t>(limit_of_numbers(graph, tensor));
    Tensor result = torch::empty(Shape(shape.begin(), shape.end()), torch::kDouble);
    auto* data = result.data_ptr<double>();
    for (std::int64_t i = 0; i < result.numel(); ++i) {
      data[i] =
          floating ? low + (high - low) * rng.uniform() : static_cast<double>(rng.below(limit));
    }
    return result;
  };
}

}  // namespace emplace::exec
