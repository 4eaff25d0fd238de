#include "learn/general/state_columns.h"

#include <algorithm>

#include "learn/units/coordinates.h"

namespace emplace::learn {
namespace {

// Twice the fair share, or all of the memory, is 1; more than that is all the same.
float in_bounds(double value) {
  return static_cast<float>(std::min(value, 4.0) / 2);
}

}  // namespace

StateColumns::StateColumns(const UnitGraph& units, const DeviceViews& views)
    : units_(&units), views_(&views), kept_(kept_bytes(units)) {}

std::vector<double> StateColumns::exchanged_with(const PlacementState& state) const {
  std::vector<double> result(units_->num_devices(), 0);
  double total = 0;
  const auto add = [&](std::span<const UnitId> others, std::span<const Bytes> bytes) {
    for (std::size_t i = 0; i < others.size(); ++i) {
      result[state.devices[others[i]]] += static_cast<double>(bytes[i]);
      total += static_cast<double>(bytes[i]);
    }
  };
  add(units_->predecessors(state.current), units_->predecessor_bytes(state.current));
  add(units_->successors(state.current), units_->successor_bytes(state.current));
  for (double& bytes : result) bytes = total > 0 ? bytes / total : 0;
  return result;
}

void StateColumns::describe(const PlacementState& state, std::span<const DeviceId> used,
                            double fair_time, float* columns) const {
  std::vector<double> time(units_->num_devices(), 0);
  std::vector<double> kept(units_->num_devices(), 0);
  for (UnitId unit = 0; unit < units_->size(); ++unit) {
    if (unit == state.current) continue;
    const DeviceId device = state.devices[unit];
    time[device] += views_->time(unit, device);
    kept[device] += kept_[unit];
  }
  const std::vector<double> exchanged = exchanged_with(state);
  for (const DeviceId device : used) {
    const double all_time = time[device] + views_->time(state.current, device);
    const double all_kept = kept[device] + kept_[state.current];
    const Bytes memory = units_->problem().cluster().device(device).memory;
    float* at = columns + static_cast<std::int64_t>(device) * kColumns;
    *at++ = state.devices[state.current] == device ? 1.0F : 0.0F;
    *at++ = static_cast<float>(exchanged[device]);
    *at++ = in_bounds(all_time / fair_time);
    *at++ = memory == kUnlimited
                ? 0.0F
                : in_bounds(2 * all_kept / std::max(1.0, static_cast<double>(memory)));
  }
}

torch::Tensor StateColumns::operator()(std::span<const PlacementState* const> states,
                                       std::span<const DeviceId> used) const {
  const auto devices = static_cast<std::int64_t>(units_->num_devices());
  double rate = 0;  // of all devices together
  for (const DeviceId device : used) rate += 1 / std::max(1.0, views_->total_time(device));
  torch::Tensor result =
      torch::zeros({static_cast<std::int64_t>(states.size()), devices, kColumns}, torch::kFloat32);
  float* columns = result.data_ptr<float>();
  for (const PlacementState* state : states) {
    describe(*state, used, 1 / rate, columns);
    columns += devices * kColumns;
  }
  return result;
}

}  // namespace emplace::learn
