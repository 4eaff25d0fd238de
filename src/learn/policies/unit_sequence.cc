#include "learn/policies/unit_sequence.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "learn/policies/independent.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kWaves = 16;

}  // namespace

UnitSequence::UnitSequence(UnitGraph units, bool by_locality, torch::Device device)
    : units_(std::move(units)),
      order_(by_locality ? locality_order(units_) : topological_order(units_)),
      sequence_(to_tensor(std::vector<std::int64_t>(order_.begin(), order_.end()), device)),
      mask_(device_mask(units_, device).index_select(0, sequence_)) {}

torch::Tensor UnitSequence::waves() const {
  Matrix result{.rows = size(), .columns = kWaves, .values = {}};
  result.values.resize(static_cast<std::size_t>(size() * kWaves));
  for (std::int64_t i = 0; i < size(); ++i) {
    const double place =
        std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(size());
    for (std::int64_t wave = 0; wave < kWaves; ++wave) {
      result.at(order_[static_cast<std::size_t>(i)], wave) =
          static_cast<float>(std::cos(static_cast<double>(wave + 1) * place));
    }
  }
  return to_tensor(result, sequence_.device());
}

Placement UnitSequence::placement(const Samples& samples, std::int64_t index) const {
  const torch::Tensor row = samples.actions[index].to(torch::kCPU).contiguous();
  const auto* actions = row.data_ptr<std::int64_t>();
  std::vector<DeviceId> devices(units_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    devices[order_[i]] = static_cast<DeviceId>(actions[i]);
  }
  return units_.expand(devices);
}

torch::Tensor UnitSequence::actions_for(const Placement& placement) const {
  return unit_actions(units_, placement, sequence_.device()).index_select(1, sequence_);
}

double UnitSequence::repeat_for(double blocks) const {
  const double others = std::max(1.0, static_cast<double>(units_.num_devices()) - 1);
  if (blocks <= 0) return 0;
  return std::log(std::max(1.0, others * (static_cast<double>(size()) / blocks - 1)));
}

}  // namespace emplace::learn
