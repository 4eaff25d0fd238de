// What a placer is given: how to value placements of the problem, answers to begin from, where to
// put what it finds, and, for placers that learn, where they compute and keep what they learned.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/placement.h"

#include "placer/evaluator.h"
#include "placer/valuers.h"

#include "search/context.h"
#include "search/learning.h"

namespace emplace {

struct Solution {
  Placement placement;
  Schedule schedule = {};
  Evaluation value = {};
  std::string origin = {};  // what found it
};

using Incumbent = BasicIncumbent<Solution>;

class PlaceContext : public SearchContext<Solution> {
 public:
  // `starts` are answers to begin from, where a placer can: valid placements of the problem.
  explicit PlaceContext(std::shared_ptr<const Simulator> simulator, Objective objective = {},
                        std::vector<Solution> starts = {});
  explicit PlaceContext(std::shared_ptr<const Problem> problem, Objective objective = {},
                        std::vector<Solution> starts = {});
  // For a part of a search: the same problem, under the same scheduler.
  PlaceContext(const Evaluator& whole, Objective objective, std::vector<Solution> starts = {});

  // What is found from now on is valued in this scheduler's order of ops, the starts too. To be
  // said before a placer runs; throws an Error when there is no such scheduler.
  void order_by(const std::string& scheduler);

  Evaluator& evaluator() { return *evaluator_; }
  const Evaluator& evaluator() const { return *evaluator_; }
  // To be set before a placer that learns runs.
  Learning& learning() { return learning_; }

  // Who values samples in this process's place, where there is somebody; outlives the placer's run.
  void value_with(Valuers* valuers) { valuers_ = valuers; }
  Valuers* valuers() const { return valuers_; }

  const Problem& problem() const { return evaluator_->problem(); }
  const Objective& objective() const { return evaluator_->objective(); }
  std::int64_t evaluations() const { return evaluator_->evaluations(); }

 private:
  PlaceContext(std::unique_ptr<Evaluator> evaluator, std::vector<Solution> starts);

  std::unique_ptr<Evaluator> evaluator_;
  Learning learning_;
  Valuers* valuers_ = nullptr;
};

}  // namespace emplace
