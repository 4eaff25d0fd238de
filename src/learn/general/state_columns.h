// What a policy that moves one unit at a time knows of that unit on each device, as things stand
// (Placeto): beside the pair columns of a DeviceView, and like them the same for all graphs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/features/device_view.h"
#include "learn/methods/placement_states.h"
#include "learn/nn/torch.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Keeps references to the units and their views.
class StateColumns {
 public:
  // Whether it is there; the share of what it exchanges that is exchanged with units there; time
  // spent there if it were there, in parts of what each device would have if all ended together;
  // memory kept there if it were there, in parts of the device's.
  static constexpr std::int64_t kColumns = 4;

  StateColumns(const UnitGraph& units, const DeviceViews& views);

  // [states, devices, kColumns], on the CPU, for each state's current unit; 0 for devices that are
  // not used.
  torch::Tensor operator()(std::span<const PlacementState* const> states,
                           std::span<const DeviceId> used) const;

 private:
  void describe(const PlacementState& state, std::span<const DeviceId> used, double fair_time,
                float* columns) const;
  std::vector<double> exchanged_with(const PlacementState& state) const;  // by device, in shares

  const UnitGraph* units_;
  const DeviceViews* views_;
  std::vector<double> kept_;  // bytes, by unit
};

}  // namespace emplace::learn
