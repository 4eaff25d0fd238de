#include "learn/methods/placement_states.h"

#include <algorithm>

namespace emplace::learn {
namespace {

std::vector<float> in_parts_of_maximum(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, value);
  std::vector<float> result(values.size(), 0);
  for (std::size_t i = 0; most > 0 && i < values.size(); ++i) {
    result[i] = static_cast<float>(values[i] / most);
  }
  return result;
}

template <class Value>
std::vector<float> scaled(const UnitGraph& units, const Value& value) {
  std::vector<double> values(units.size());
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    values[unit] = static_cast<double>(value(unit));
  }
  return in_parts_of_maximum(values);
}

Bytes resident_bytes(const UnitGraph& units, UnitId unit) {
  Bytes sum = 0;
  for (const GroupId group : units.groups(unit)) {
    sum += units.problem().group_resident_bytes(group);
  }
  return sum;
}

Csr<OpId> ops_that_take_time(const UnitGraph& units) {
  Csr<OpId> result;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    std::vector<OpId> timed;
    for (const GroupId group : units.groups(unit)) {
      for (const OpId op : units.problem().group_ops(group)) {
        if (units.problem().mean_duration(op) > 0) timed.push_back(op);
      }
    }
    result.push_back(timed);
  }
  return result;
}

}  // namespace

StateFeatures::StateFeatures(const UnitGraph& units, bool with_memory, bool with_devices)
    : with_memory_(with_memory),
      devices_(with_devices ? units.num_devices() : DeviceId{0}),
      cost_(scaled(units, [&](UnitId unit) { return units.mean_duration(unit); })),
      output_(scaled(units, [&](UnitId unit) { return units.output_bytes(unit); })),
      memory_(scaled(units, [&](UnitId unit) { return resident_bytes(units, unit); })),
      timed_ops_(ops_that_take_time(units)) {}

torch::Tensor StateFeatures::operator()(std::span<const PlacementState* const> states) const {
  const std::size_t units = cost_.size();
  torch::Tensor result = torch::zeros(
      {static_cast<std::int64_t>(states.size()), static_cast<std::int64_t>(units), columns()},
      torch::kFloat32);
  float* row = result.data_ptr<float>();
  for (const PlacementState* state : states) {
    for (std::size_t unit = 0; unit < units; ++unit) {
      float* at = row;
      *at++ = cost_[unit];
      *at++ = output_[unit];
      *at++ = static_cast<float>(state->visits[unit]);
      *at++ = unit == state->current ? 1.0F : 0.0F;
      *at++ = state->starts[unit] - state->starts[state->current];
      if (with_memory_) *at++ = memory_[unit];
      if (devices_ > 0) at[state->devices[unit]] = 1;
      row += columns();
    }
  }
  return result;
}

std::vector<float> StateFeatures::starts(std::span<const Nanoseconds> starts_of_ops) const {
  std::vector<double> result(timed_ops_.size(), 0);
  for (std::size_t unit = 0; unit < result.size(); ++unit) {
    const std::span<const OpId> ops = timed_ops_[unit];
    if (ops.empty()) continue;
    Nanoseconds first = starts_of_ops[ops.front()];
    for (const OpId op : ops) first = std::min(first, starts_of_ops[op]);
    result[unit] = static_cast<double>(first);
  }
  return in_parts_of_maximum(result);
}

}  // namespace emplace::learn
