// The samples of a placer that learns, valued by all ranks: what comes out is what one process
// would have found, whoever valued which; but each rank executes steps on devices of its own, which
// take the time that they take there.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "placer/valuers.h"

#include "dist/crew.h"
#include "run/sample_valuer.h"

namespace emplace {

class RankValuers final : public Valuers {
 public:
  // The rest is a SampleValuer's.
  RankValuers(dist::Crew& crew, std::size_t run_index, std::size_t problem_index,
              PlaceContext& context, double least_seconds, const Budget& budget = {});

  std::vector<ValuedSample> value(const std::vector<Placement>& placements, bool with_starts,
                                  int threads) override;

 private:
  dist::Crew& crew_;
  SampleValuer valuer_;
  std::mutex one_at_a_time_;
};

}  // namespace emplace
