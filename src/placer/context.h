// What a placer is given: how to value placements of the problem, answers to begin from, where to
// put what it finds, and, for placers that learn, where they compute and keep what they learned.
#pragma once

#include <algorithm>
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

// Of a search that is done in several parts, one after the other, of which each begins from what
// those before it have found: which it is, of how many.
struct SearchPart {
  int index = 0;
  int count = 1;

  bool first() const { return index == 0; }
  bool last() const { return index + 1 == count; }
  // Of the part, the share at which this share of the whole search is over: from 0 to 1.
  double own_share(double of_whole) const { return std::clamp(of_whole * count - index, 0.0, 1.0); }
  // How much of the part belongs to the last so much of the whole.
  double own_rest(double of_whole) const {
    return std::clamp(of_whole * count - (count - 1 - index), 0.0, 1.0);
  }
  // How much of the whole is over when so much of the part is.
  double of_whole(double own_share) const { return (index + own_share) / count; }
};

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
  // What is found from now on is valued by this, the starts too (Evaluator::measure_with).
  void measure_with(Evaluator::Measure measure);

  Evaluator& evaluator() { return *evaluator_; }
  const Evaluator& evaluator() const { return *evaluator_; }
  // To be set before a placer that learns runs.
  Learning& learning() { return learning_; }

  // Who values samples in this process's place, where there is somebody; outlives the placer's run.
  void value_with(Valuers* valuers) { valuers_ = valuers; }
  Valuers* valuers() const { return valuers_; }

  // Whether a search is to prove how good its answer is, rather than to leave that to another one
  // on the same problem, whose bounds the incumbent hears of.
  void leave_bounds_to_others() { proves_bounds_ = false; }
  bool proves_bounds() const { return proves_bounds_; }
  void set_part(const SearchPart& part) { part_ = part; }
  const SearchPart& part() const { return part_; }

  const Problem& problem() const { return evaluator_->problem(); }
  const Objective& objective() const { return evaluator_->objective(); }
  std::int64_t evaluations() const { return evaluator_->evaluations(); }

 private:
  PlaceContext(std::unique_ptr<Evaluator> evaluator, std::vector<Solution> starts);

  void value_starts();

  std::unique_ptr<Evaluator> evaluator_;
  Learning learning_;
  Valuers* valuers_ = nullptr;
  bool proves_bounds_ = true;
  SearchPart part_;
};

}  // namespace emplace
