// Placements rounded to what people would cut a model into.
#pragma once

#include <vector>

#include "cost/problem.h"

#include "sim/placement.h"

#include "learn/general/whole_parts.h"

namespace emplace::learn {

class Rounding {
 public:
  explicit Rounding(const Problem& problem);

  // The placement with every module where most of its time is; for a recurrent network also with
  // every layer so. Groups that may not go there stay. Only those that differ from it.
  std::vector<Placement> operator()(const Placement& placement) const;

 private:
  const Problem* problem_;
  std::vector<PartOfGroup> part_of_group_;  // of each way to cut
};

}  // namespace emplace::learn
