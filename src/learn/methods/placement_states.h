// What a policy that moves one unit at a time sees: the whole placement as it is, and whose turn it
// is (Placeto).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/nn/torch.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Kept small, since an episode keeps one for every step.
struct PlacementState {
  std::vector<DeviceId> devices;     // by unit
  std::vector<std::uint8_t> visits;  // by unit: how often its turn has been, 255 at most
  // By unit: when it starts in a step of the placement, as a share of the latest start.
  std::vector<float> starts;
  UnitId current = 0;
  // By device, what is added to its score; empty: nothing.
  std::vector<float> leaning = {};
};

// By unit: cost, size of the outputs, visits, whether it is the current one, start relative to the
// current one's, perhaps memory kept for the step, and perhaps one column for each device that is 1
// where the unit is. Cost, sizes and starts are in parts of their maximum over the units.
class StateFeatures {
 public:
  StateFeatures(const UnitGraph& units, bool with_memory, bool with_devices = true);

  std::int64_t columns() const { return kFixed + (with_memory_ ? 1 : 0) + devices_; }
  // [states, units, columns], on the CPU.
  torch::Tensor operator()(std::span<const PlacementState* const> states) const;
  // PlacementState::starts from the starts of ops. A unit starts with the first of its ops that
  // takes time.
  std::vector<float> starts(std::span<const Nanoseconds> starts_of_ops) const;

 private:
  static constexpr std::int64_t kFixed = 5;

  bool with_memory_;
  std::int64_t devices_;  // columns for them
  std::vector<float> cost_;
  std::vector<float> output_;
  std::vector<float> memory_;
  Csr<OpId> timed_ops_;  // by unit
};

}  // namespace emplace::learn
