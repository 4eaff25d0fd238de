// Units that are learned together with how they are placed: what Placeto's authors leave to future
// work. HDP's grouper (learn/policies/grouper.h) begins with slices of the order in which ops run,
// draws one grouping for all workers of an episode, and learns by REINFORCE from how their episodes
// end, compared with a moving average.
#pragma once

#include <cstdint>

#include <emplace/search.h>

#include "base/rng.h"

#include "learn/learners/baseline.h"
#include "learn/nn/module.h"
#include "learn/nn/optimizer.h"
#include "learn/nn/torch.h"
#include "learn/policies/grouper.h"
#include "learn/train/state.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

class LearnedGrouping {
 public:
  // Puts `members` into `groups`, or fewer where there are fewer of them.
  LearnedGrouping(UnitGraph members, std::int64_t groups, const OptimizerSettings& optimizer,
                  torch::Device device, Rng& rng);

  const UnitGraph& members() const { return members_; }
  // What is in no group is no unit; what would close a cycle, or no device may run together, is
  // several, and pieces of groups are merged where there are more than groups: see
  // group_as_labelled (learn/units/groupings.h).
  UnitGraph likeliest() const;
  UnitGraph draw(Rng& rng);
  // Of what was drawn last; says in the point how groups changed.
  void learn(double cost, TrainingPoint& point);

  void save(StateWriter& state) const;
  void load(const StateReader& state);

 private:
  UnitGraph units_of(const torch::Tensor& group_of_member) const;

  UnitGraph members_;
  std::int64_t groups_;
  Parameters parameters_;
  Grouper grouper_;
  MovingBaseline baseline_;
  Optimizer optimizer_;
  torch::Tensor drawn_;  // int64, by member
};

}  // namespace emplace::learn
