#include "run/batch_search.h"

#include <algorithm>

#include <fmt/format.h>

#include "run/portfolio.h"
#include "run/single_device.h"

namespace emplace {

BatchSearch find_largest_batch(const BatchRange& range,
                               const std::function<BatchProbe(std::int64_t batch)>& probe) {
  BatchSearch search;
  const auto fits = [&](std::int64_t batch) {
    search.tried.push_back(probe(batch));
    if (search.tried.back().fits) search.largest = batch;
    return search.tried.back().fits;
  };
  std::int64_t batch = range.low;
  while (fits(batch)) {
    if (batch == range.high) return search;
    batch = std::min(range.high, 2 * batch);
  }
  if (!search.largest) return search;
  std::int64_t too_large = batch;
  while (too_large - *search.largest > 1) {
    const std::int64_t middle = *search.largest + (too_large - *search.largest) / 2;
    if (!fits(middle)) too_large = middle;
  }
  return search;
}

const BatchProbe* BatchSearch::best() const {
  for (const BatchProbe& probe : tried) {
    if (largest && probe.batch == *largest) return &probe;
  }
  return nullptr;
}

BatchProbe probe_batch(std::int64_t batch, const SubsetProblems& problems, const Budget& budget,
                       std::vector<PlacerRun> runs) {
  if (problems.why_nothing_fits()) return {batch, false, "proven: " + *problems.why_nothing_fits()};
  const Problem& problem = problems.whole()->problem();
  Evaluator evaluator(problems.whole(), problems.objective());
  DeviceSet usable;
  for (const SubsetProblem& subset : problems.list()) {
    usable.insert(usable.end(), subset.devices.begin(), subset.devices.end());
  }
  std::sort(usable.begin(), usable.end());
  usable.erase(std::unique(usable.begin(), usable.end()), usable.end());
  const bool any_placer = runs.empty();
  const auto one = any_placer ? try_single_devices(evaluator, usable).fitting : std::nullopt;
  if (one) {
    return {batch, true, fmt::format("on {} alone", problem.cluster().device(one->device).name),
            Placement(problem.num_ops(), one->device)};
  }
  const auto fits_by = [&](const RunResult& found) {
    return BatchProbe{batch, true, "placed by " + found.run.placer.to_string(),
                      found.result.placement, found.result.schedule};
  };
  if (any_placer && problems.most_devices() == 0) {
    const SubsetProblem& first = problems.list().front();
    for (RunResult split : quick_splits(first.simulator, problems.objective())) {
      if (!split.evaluation.fits()) continue;
      split.result.placement = to_whole(split.result.placement, first.devices);
      return fits_by(split);
    }
  }
  const PortfolioResult found =
      Portfolio(problems, {.runs = any_placer ? make_runs("auto", "own") : std::move(runs),
                           .budget = budget.restarted()})
          .run();
  if (found.best().evaluation.fits()) return fits_by(found.best());
  return {batch, false, "no placement that fits was found"};
}

}  // namespace emplace
