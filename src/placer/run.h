// Runs a placer from its spec to a result that has been checked and simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "sim/throughput.h"
#include "sim/timeline.h"

#include "placer/context.h"
#include "placer/placer.h"
#include "placer/scheduler.h"

#include "bound/lower_bound.h"
#include "search/registry.h"

namespace emplace {

struct PlacerRun {
  MethodSpec placer;
  std::string scheduler{kOwnSchedule};  // or kBestSchedule, or a key of placer/scheduler.h
  std::uint64_t seed = 1;
  // Makes a placer that is in no registry; `placer` is then what it is called.
  std::function<std::unique_ptr<Placer>()> make = {};
};

struct RunResult {
  PlacerRun run;  // in place of kBestSchedule: the one that was best
  PlaceResult result;
  Evaluation evaluation;  // under the objective, evaluated afresh
  LowerBound bound;       // that the placer proved on the way, of placements that fit; 0: none
  std::int64_t evaluations = 0;
  double seconds = 0;
};

// One run with a context of its own, which says what is wanted: the objective and the starts. Under
// a scheduler, everything that the placer evaluates is in that scheduler's order. Throws an Error
// when the spec is wrong, or when the placer's answer needs a link that the cluster does not have.
RunResult run_placer(const PlacerRegistry& registry, PlaceContext& context, const PlacerRun& run,
                     const Budget& budget);

// The same placement in the order of another scheduler.
RunResult with_scheduler(const RunResult& base, const std::string& scheduler, Evaluator& evaluator);

}  // namespace emplace
