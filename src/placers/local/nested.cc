#include "placers/local/nested.h"

#include <algorithm>

#include "placer/placer.h"

#include "placers/all.h"
#include "placers/local/frame.h"

namespace emplace {

Budget without_share(const Budget& budget, const Evaluator& evaluator, double share) {
  Budget rest = budget;
  if (rest.seconds) {
    *rest.seconds = std::max(budget.elapsed_seconds(), *rest.seconds * (1 - share));
  }
  if (rest.evaluations) {
    *rest.evaluations =
        std::max(evaluator.evaluations(),
                 static_cast<std::int64_t>(static_cast<double>(*rest.evaluations) * (1 - share)));
  }
  return rest;
}

void run_nested(const std::string& key, const OptionValues& options, Evaluator& evaluator,
                const Budget& budget, const Rng& rng, std::vector<Solution> starts) {
  Evaluator own(evaluator.simulator(), evaluator.objective(), std::move(starts));
  own.incumbent().raise(evaluator.incumbent().bound());
  own.incumbent().listen([&](const Incumbent& incumbent) {
    if (const auto best = incumbent.best()) evaluator.incumbent().offer(*best);
  });
  Budget rest = budget;
  if (rest.evaluations) *rest.evaluations -= evaluator.evaluations();
  all_placers().make({key, options})->place(evaluator.problem(), own, rest, rng);
  evaluator.count(own.evaluations());
}

void polish_best(Evaluator& evaluator, const Budget& budget, const Rng& rng) {
  if (!worth_searching(evaluator, budget)) return;
  run_nested("lns", {{"classical", "false"}}, evaluator, budget, rng,
             {*evaluator.incumbent().best()});
}

}  // namespace emplace
