#include "placers/local/nested.h"

#include <algorithm>

#include "placer/placer.h"

#include "placers/all.h"
#include "placers/local/frame.h"

namespace emplace {

Budget without_share(const Budget& budget, const PlaceContext& context, double share) {
  Budget rest = budget;
  if (rest.seconds) {
    *rest.seconds = std::max(budget.elapsed_seconds(), *rest.seconds * (1 - share));
  }
  if (rest.evaluations) {
    *rest.evaluations =
        std::max(context.evaluations(),
                 static_cast<std::int64_t>(static_cast<double>(*rest.evaluations) * (1 - share)));
  }
  return rest;
}

void run_nested(const std::string& key, const OptionValues& options, PlaceContext& context,
                const Budget& budget, const Rng& rng, std::vector<Solution> starts) {
  PlaceContext own(context.evaluator(), context.objective(), std::move(starts));
  own.incumbent().raise(context.incumbent().bound());
  const auto hearing = own.incumbent().listen([&](const Incumbent& incumbent) {
    if (const auto best = incumbent.best()) context.incumbent().offer(*best);
  });
  Budget rest = budget;
  if (rest.evaluations) *rest.evaluations -= context.evaluations();
  all_placers().make({key, options})->place(own, rest, rng);
  context.evaluator().count(own.evaluations());
}

void polish_best(PlaceContext& context, const Budget& budget, const Rng& rng) {
  if (!worth_searching(context, budget)) return;
  run_nested("lns", {{"classical", "false"}}, context, budget, rng, {*context.incumbent().best()});
}

}  // namespace emplace
