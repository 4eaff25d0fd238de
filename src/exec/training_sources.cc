// Contents of a training step's sources (sources.h). What a source is follows from what reads it,
// beyond ops that only show it, cut it or put it together.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"

#include "graph/fan_in.h"
#include "graph/precision.h"

#include "exec/random.h"
#include "exec/ranges.h"
#include "exec/sources.h"

namespace emplace::exec {
namespace {

// Where a source's elements lie in the whole: of a piece of a divided graph, its region.
struct Place {
  std::string_view name;
  Shape begin, shape, whole;
};

Place place_of(const Graph& graph, OpId op, std::size_t output) {
  const auto shape = graph.shape(graph.outputs(op)[output]);
  Place place{graph.op_name(op), {}, {shape.begin(), shape.end()}, {shape.begin(), shape.end()}};
  place.begin.assign(shape.size(), 0);
  const auto begin = graph.attributes(op).integers("region_begin");
  const auto whole = graph.attributes(op).integers("region_shape");
  const std::size_t at = place.name.rfind('@');
  if (begin.size() != shape.size() || whole.size() != shape.size() || at == place.name.npos) {
    return place;
  }
  place.name = place.name.substr(0, at);
  place.begin.assign(begin.begin(), begin.end());
  place.whole.assign(whole.begin(), whole.end());
  return place;
}

// A function of every element's number in the whole.
template <class Function>
Tensor drawn(const Place& place, const Function& function) {
  Tensor result = torch::empty(place.shape, torch::kDouble);
  auto* data = result.data_ptr<double>();
  for_ranges(result, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      std::int64_t rest = i;
      std::int64_t number = 0;
      std::int64_t stride = 1;
      for (std::size_t d = place.shape.size(); d-- > 0;) {
        number += (place.begin[d] + rest % place.shape[d]) * stride;
        rest /= place.shape[d];
        stride *= place.whole[d];
      }
      data[i] = function(static_cast<std::uint64_t>(number));
    }
  });
  return result;
}

Tensor uniform_numbers(const Place& place, std::uint64_t key, double bound) {
  return drawn(place, [&](std::uint64_t i) { return bound * (2 * uniform_at(key, i) - 1); });
}

// Sums of four uniform numbers, of mean 0 and deviation 1.
Tensor normal_numbers(const Place& place, std::uint64_t key) {
  return drawn(place, [&](std::uint64_t i) {
    double sum = -2;
    for (std::uint64_t k = 0; k < 4; ++k) sum += uniform_at(key, 4 * i + k);
    return sum * std::sqrt(3.0);
  });
}

Tensor whole_numbers(const Place& place, std::uint64_t key, std::int64_t limit) {
  return drawn(place, [&](std::uint64_t i) {
    return std::floor(uniform_at(key, i) * static_cast<double>(limit));
  });
}

Tensor constant_numbers(const Place& place, double value) {
  return torch::full(place.shape, value, torch::kDouble);
}

// Of a normalisation: scale, bias, running mean and variance.
std::optional<double> norm_value(const Graph& graph, const WeightReader& reader) {
  if (reader.op == kNoOp) return std::nullopt;
  const std::string_view type = graph.type(reader.op);
  if (type.find("Normalization") == type.npos && type != "BatchNormApply") return std::nullopt;
  if (reader.input == 1) return 1;
  return reader.input == 4 ? 1 : 0;
}

class Beginning {
 public:
  Beginning(std::uint64_t seed, const OpTarget& target) : seed_(seed), target_(target) {}

  Tensor operator()(const Graph& graph, OpId op, std::size_t output) const {
    const Tensor value = graph.role(op) == OpRole::kConstant
                             ? constant_value(graph, op)
                             : wide(graph, op, output, place_of(graph, op, output));
    const auto type = scalar_type(graph.dtype(graph.outputs(op)[output]), target_);
    return value.to(torch::TensorOptions(type).device(target_.device));
  }

 private:
  Tensor wide(const Graph& graph, OpId op, std::size_t output, const Place& place) const {
    const TensorId tensor = graph.outputs(op)[output];
    const std::uint64_t key = stream_key(seed_ + output, place.name);
    if (!at::isFloatingType(scalar_type(graph.dtype(tensor), target_))) {
      return whole_numbers(place, key, limit_of_numbers(graph, tensor));
    }
    if (graph.role(op) == OpRole::kInput) return normal_numbers(place, key);
    const WeightReader reader = first_reader(graph, tensor);
    if (graph.role(op) == OpRole::kBuffer) return buffer(graph, place, reader);
    if (const auto value = norm_value(graph, reader)) return constant_numbers(place, *value);
    std::int64_t inputs = graph.attributes(op).integer(kFanInAttribute, -1);
    if (inputs < 0) inputs = place.whole.size() < 2 ? 0 : fan_in(graph, reader, place.whole);
    if (inputs == 0) return constant_numbers(place, 0);
    return uniform_numbers(place, key, 1 / std::sqrt(static_cast<double>(inputs)));
  }

  Tensor buffer(const Graph& graph, const Place& place, const WeightReader& reader) const {
    if (reader.op != kNoOp && graph.phase(reader.op) == Phase::kUpdate) {
      const auto inputs = graph.inputs(reader.op);
      const bool narrow = is_narrow(graph.dtype(inputs[0]));
      if (!narrow || reader.input + 1 < inputs.size()) return constant_numbers(place, 0);
      return master(graph, inputs[0], place);
    }
    return constant_numbers(place, norm_value(graph, reader).value_or(0));
  }

  // What the weight is a rounding of.
  Tensor master(const Graph& graph, TensorId weight, Place place) const {
    OpId op = graph.producer(weight);
    while (!graph.is_source(op)) op = graph.producer(graph.inputs(op)[0]);
    place.name = place_of(graph, op, 0).name;
    return wide(graph, op, 0, place);
  }

  std::uint64_t seed_;
  OpTarget target_;
};

}  // namespace

SourceValue training_sources(std::uint64_t seed, const OpTarget& target) {
  return Beginning(seed, target);
}

}  // namespace emplace::exec
