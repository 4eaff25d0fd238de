// Placeto's policy for any graph and any devices. A unit's row says what it is and what the device
// is that it is on (learn/features/device_view.h); messages and pools as in
// learn/encoders/message_passing.h make a vector of the unit whose turn it is, which is scored on
// every device (learn/nn/device_scores.h) by what is known of the two as things stand.
#pragma once

#include <span>
#include <vector>

#include "base/csr.h"
#include "base/rng.h"

#include "learn/encoders/message_passing.h"
#include "learn/features/device_view.h"
#include "learn/general/network.h"
#include "learn/general/state_columns.h"
#include "learn/methods/move_policy.h"
#include "learn/nn/device_scores.h"
#include "learn/units/precedence.h"

namespace emplace::learn {

class GeneralEpisodePolicy final : public MovePolicy {
 public:
  // At first it uses all devices.
  GeneralEpisodePolicy(UnitGraph units, const GeneralNetwork& network, torch::Device device,
                       Rng& rng);
  // Its parts refer to each other.
  GeneralEpisodePolicy(const GeneralEpisodePolicy&) = delete;
  GeneralEpisodePolicy& operator=(const GeneralEpisodePolicy&) = delete;

  const UnitGraph& units() const override { return units_; }
  const StateFeatures& features() const override { return features_; }
  const Parameters& parameters() const override { return parameters_; }
  Parameters& parameters() { return parameters_; }
  std::span<const UnitId> order() const override { return precedence_.order; }
  std::span<const DeviceId> choices(UnitId unit) const override { return choices_[unit]; }
  torch::Tensor log_probs(std::span<const PlacementState* const> states) const override;

  const DeviceViews& views() const { return views_; }
  void use(std::span<const DeviceId> devices);
  std::span<const DeviceId> used() const { return used_; }
  // Every unit on the device whose slice along the modules it is nearest to.
  const std::vector<DeviceId>& slices() const { return slices_; }
  // The same where this much [devices] is added to the scores that devices have by nearness
  // (learn/nn/device_scores.h).
  std::vector<DeviceId> slices(const torch::Tensor& leaning) const;

 private:
  torch::Tensor rows(std::span<const PlacementState* const> states) const;

  UnitGraph units_;
  Precedence precedence_;
  DeviceViews views_;
  StateFeatures features_;
  StateColumns columns_;
  Parameters parameters_;
  Linear input_;
  MessagePassing network_;
  DeviceScores scores_;

  std::vector<DeviceId> used_;
  std::vector<DeviceId> slices_;
  Csr<DeviceId> choices_;
  DeviceTensors tensors_;
  torch::Tensor places_;  // [units * devices, columns]: of the device, and of the unit there
};

}  // namespace emplace::learn
