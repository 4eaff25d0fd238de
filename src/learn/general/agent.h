// A policy at work on one graph and one cluster. Its parameters mean the same on every graph and
// for any number and kind of devices, so agents on different problems learn one policy together: by
// the sum of their gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/rng.h"

#include "sim/placement.h"

#include "learn/nn/module.h"
#include "learn/nn/torch.h"
#include "learn/train/environment.h"
#include "learn/units/unit_graph.h"
#include "search/learning.h"

namespace emplace::learn {

class DeviceViews;
class StateReader;
class StateWriter;

struct Imitation {
  std::vector<torch::Tensor> gradient;  // beside the parameters
  double likelihood = 0;                // of a decision, the geometric mean
};

class GeneralAgent {
 public:
  virtual ~GeneralAgent() = default;

  virtual Parameters& parameters() = 0;
  virtual const DeviceViews& views() const = 0;
  // Which devices it places on from now on: not none. At first all.
  virtual void use(std::span<const DeviceId> devices) = 0;

  // Placements that `explore` evaluates.
  virtual std::int64_t round_size() const = 0;
  // Samples with the parameters as they are, evaluates, and keeps what `gradient` needs. Where the
  // budget allows less than a whole round: false, and nothing to learn from.
  virtual bool explore(Environment& environment, Rng& rng, TrainingPoint& point) = 0;
  // The same from a placement with its value, whose parts it decides about anew: for learning on
  // one graph alone. What is better takes its place, unless it is false.
  virtual bool refine(Solution& from, Environment& environment, Rng& rng, TrainingPoint& point) = 0;
  // How often a step against `gradient` is worth taking before exploring again.
  virtual std::int64_t epochs() const { return 1; }
  // Of these steps where it learns alone, on one problem.
  virtual double learning_rate() const { return 1e-3; }
  // Of this problem's part of what is minimised, on what was explored last, at the parameters as
  // they are now. The first call is at those that explored.
  virtual std::vector<torch::Tensor> gradient() = 0;

  // How unlikely the decisions are that lead to a placement on the devices in use.
  virtual Imitation imitate(const Placement& placement, Environment& environment, Rng& rng) = 0;
  // Of what an encoder learns without placements; nothing where there is nothing of the kind.
  virtual std::vector<torch::Tensor> encoder_gradient(Rng& /*rng*/) { return {}; }

  // Evaluates its likeliest placement, what is likeliest when it leans to some devices more than to
  // others, and what it samples: `count` in all or fewer where the budget says so. Where it comes
  // to a placement by way of others, these do not count. Gives the likeliest, and the best if that
  // is another; nothing where there is no budget left.
  virtual std::vector<Placement> propose(std::int64_t count, Environment& environment,
                                         Rng& rng) = 0;

  // What it keeps from one exploration to the next beside its parameters, for checkpoints.
  virtual void save(StateWriter& /*state*/) const {}
  virtual void load(const StateReader& /*state*/) {}
};
using GeneralAgentPtr = std::shared_ptr<GeneralAgent>;

}  // namespace emplace::learn
