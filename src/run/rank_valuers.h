// The samples of a placer that learns, valued by all ranks: what comes out is what one process
// would have found, whoever valued which.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "placer/context.h"
#include "placer/valuers.h"

#include "dist/crew.h"

namespace emplace {

class RankValuers final : public Valuers {
 public:
  // Tasks name the run and the problem by these numbers. `least_seconds`: what is valued sooner
  // than that is not worth the messages.
  RankValuers(dist::Crew& crew, std::size_t run_index, std::size_t problem_index,
              PlaceContext& context, double least_seconds);

  std::vector<ValuedSample> value(const std::vector<Placement>& placements, bool with_starts,
                                  int threads) override;

 private:
  std::vector<ValuedSample> value_here(const std::vector<Placement>& placements, std::size_t first,
                                       std::size_t count, bool with_starts, int threads);
  // Of one task. An Error says that it makes no sense.
  void take(dist::Reader& reader, const std::vector<Placement>& placements, std::size_t first,
            std::size_t count, bool with_starts, std::vector<ValuedSample>& samples);

  dist::Crew& crew_;
  std::size_t run_index_;
  std::size_t problem_index_;
  PlaceContext& context_;
  double least_seconds_;
  bool all_linked_;
  std::mutex one_at_a_time_;
  double seconds_each_ = -1;  // that a placement takes; less than 0: not known
};

// On another rank: does what the rest of the task says, behind run and problem.
std::string value_for_others(dist::Reader& task, Evaluator& evaluator, int threads);

}  // namespace emplace
