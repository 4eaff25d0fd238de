// A policy that decides about one unit of a whole placement at a time (Placeto).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

#include "learn/encoders/message_passing.h"
#include "learn/methods/placement_states.h"
#include "learn/module.h"
#include "learn/torch.h"
#include "learn/unit_graph.h"

namespace emplace::learn {

class EpisodePolicy {
 public:
  // `with_memory`: see StateFeatures.
  EpisodePolicy(UnitGraph units, const MessagePassingSettings& network, bool with_memory,
                torch::Device device, Rng& rng);

  const UnitGraph& units() const { return units_; }
  const StateFeatures& features() const { return features_; }
  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }

  // [states, devices]: of each state's current unit. May be called from several threads at once.
  torch::Tensor log_probs(std::span<const PlacementState* const> states) const;

 private:
  UnitGraph units_;
  StateFeatures features_;
  Parameters parameters_;
  MessagePassing network_;
  torch::Tensor mask_;  // [units, devices]
};

struct Decision {
  PlacementState state;  // before it
  DeviceId device = 0;
  float log_prob = 0;
};

// A decision and by how much it should become more likely.
struct Lesson {
  const PlacementState* state = nullptr;
  DeviceId device = 0;
  double advantage = 0;
};

struct LessonGradient {
  std::vector<torch::Tensor> by_parameter;
  double log_likelihood = 0;  // mean over the lessons
  double entropy = 0;         // likewise
};

// Of the sum over all lessons of -advantage * log p(device) - entropy_weight * entropy. Works
// through the lessons in pieces, so that memory does not grow with their number; the pieces, and so
// the result, do not depend on `threads`.
LessonGradient gradient_of(const EpisodePolicy& policy, std::span<const Lesson> lessons,
                           double entropy_weight, int threads);

}  // namespace emplace::learn
