// Placeto's policy for one graph and its devices: a row of features for every unit, the device that
// it is on among them, and message passing along what runs before what
// (learn/units/precedence.h).
#pragma once

#include "base/rng.h"

#include "learn/encoders/message_passing.h"
#include "learn/methods/move_policy.h"
#include "learn/units/precedence.h"

namespace emplace::learn {

class EpisodePolicy final : public MovePolicy {
 public:
  // `with_memory`: see StateFeatures.
  EpisodePolicy(UnitGraph units, const MessagePassingSettings& network, bool with_memory,
                torch::Device device, Rng& rng);
  // With the same parameters for other units of the same problem.
  EpisodePolicy on(UnitGraph units) const;

  const UnitGraph& units() const override { return units_; }
  const StateFeatures& features() const override { return features_; }
  const Parameters& parameters() const override { return parameters_; }
  std::span<const UnitId> order() const override { return precedence_.order; }
  std::span<const DeviceId> choices(UnitId unit) const override {
    return units_.allowed_devices(unit);
  }
  torch::Tensor log_probs(std::span<const PlacementState* const> states) const override;

 private:
  UnitGraph units_;
  Precedence precedence_;
  bool with_memory_;
  StateFeatures features_;
  Parameters parameters_;
  MessagePassing network_;
  torch::Tensor mask_;  // [units, devices]
};

}  // namespace emplace::learn
