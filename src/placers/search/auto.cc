// Our own placer, which users run by default: begins with the classical placers' answers, improves
// on them for as long as the budget lasts, and says how far from the best it can still be.
#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"

#include "placer/placer.h"

#include "placers/local/frame.h"
#include "placers/local/latency_search.h"
#include "placers/local/nested.h"
#include "placers/local/starts.h"

#include "bound/lower_bound.h"
#include "stream/simulated.h"
#include "stream/solve.h"

namespace emplace {
namespace {

constexpr std::size_t kStarts = 8;
// Of the budget, for bounds: before the other placers run, in case one device is proven to be the
// best; before the search; and after it, when the bound has a better answer to beat.
constexpr double kEarlyBoundShare = 0.02;
constexpr double kBoundShare = 0.03;
// Of the budget, for large neighbourhoods at the end.
constexpr double kPolishShare = 0.1;
// Of the budget for a stream, for its best single step.
constexpr double kStepShare = 0.35;
constexpr std::size_t kSplits = 2;  // that are simulated
// At most, under an evaluation budget. The answer does not depend on it: where the bound ends the
// search early, nothing better was to be found.
constexpr double kBoundSeconds = 2;

class Auto final : public Placer {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit Auto(const Options&) {}

  PlaceResult place(PlaceContext& context, const Budget& given, Rng rng) override {
    const Budget budget = given.or_default();
    return context.objective().match(
        [&](const StepTime&) {
          place_step(context, budget, rng);
          return end_search(context);
        },
        [&](const StreamPeriod& stream) {
          if (stream_is_simulated(context.problem(), stream.overlap)) {
            place_simulated_stream(context, budget, rng);
            return end_search(context);
          }
          return solve_stream(context, stream, budget, rng.split(0));
        });
  }

 private:
  // The best step can always be repeated; a stream that is better has more in flight.
  void place_simulated_stream(PlaceContext& context, const Budget& budget, const Rng& rng) const {
    begin_search(context);
    for (const Solution& start : context.starts()) offer_exactly(context, start);
    Budget own = without_share(budget, context, 1 - kStepShare);
    if (own.evaluations) *own.evaluations -= context.evaluations();
    PlaceContext step(context.evaluator(), StepTime{}, context.starts());
    place_step(step, own, rng.split(0));
    context.evaluator().count(step.evaluations());
    offer_exactly(context, *step.incumbent().best());
    if (!worth_searching(context, budget)) return;
    offer_splits(context, budget, rng.split(1));
    if (worth_searching(context, budget)) solve_simulated_stream(context, budget, rng.split(2));
  }

  // Consecutive parts pass each step on once, so that it is in flight for as short as can be: good
  // where memory holds few of them.
  static void offer_splits(PlaceContext& context, const Budget& budget, const Rng& rng) {
    const std::array<std::string, 3> splits{"expert", "metis", "dp"};
    PlaceContext own(context.evaluator(), context.objective());
    own.incumbent().raise(context.incumbent().bound());
    Budget rest = budget;
    if (rest.evaluations) *rest.evaluations -= context.evaluations();
    std::vector<Solution> found;
    try {
      found = starts_of(splits, own, rest, rng);
    } catch (const Error&) {
      // Not on these devices, which is no news here.
    }
    context.evaluator().count(own.evaluations());
    found.resize(std::min<std::size_t>(found.size(), kSplits));
    for (Solution& split : found) offer_exactly(context, std::move(split));
  }

  void place_step(PlaceContext& context, const Budget& budget, const Rng& rng) const {
    begin_search(context);
    if (context.part().first()) {
      const std::array<std::string, 1> one_device{"single"};
      starts_of(one_device, context, budget, rng.split(0));
    }
    raise_bound(context, budget, kEarlyBoundShare);
    if (!worth_searching(context, budget)) return;
    const std::vector<Solution> starts = classical_starts(context, budget, rng.split(1), kStarts);
    raise_bound(context, budget, kBoundShare);
    if (!worth_searching(context, budget)) return;
    // What annealing leaves behind, large neighbourhoods find.
    const SearchPart& part = context.part();
    const double bound_share = context.proves_bounds() ? kBoundShare : 0;
    const double last = part.own_rest(bound_share);
    const double late = part.own_rest(bound_share + kPolishShare);
    search_latency(context, without_share(budget, context, late), rng.split(2), starts,
                   1 - bound_share - kPolishShare);
    polish_best(context, without_share(budget, context, last), rng.split(3));
    raise_bound(context, budget, 1);
  }

  // With at most this share of the whole budget, and of what is left.
  static void raise_bound(PlaceContext& context, const Budget& budget, double share) {
    if (!context.proves_bounds()) return;
    const std::optional<Evaluation> best = context.incumbent().value();
    if (!best || !best->fits() || !worth_searching(context, budget)) return;
    Budget own = budget;
    if (own.seconds) {
      *own.seconds = std::min(*budget.seconds, budget.elapsed_seconds() + share * *budget.seconds);
    }
    if (own.evaluations) {
      const std::int64_t left = *budget.evaluations - context.evaluations();
      own.evaluations = std::min(
          left, static_cast<std::int64_t>(share * static_cast<double>(*budget.evaluations)));
      const double most = budget.elapsed_seconds() + kBoundSeconds;
      own.seconds = own.seconds ? std::min(*own.seconds, most) : most;
    }
    context.incumbent().raise(
        improve_bound(context.problem(), best->step, own,
                      [&](const LowerBound& bound) { context.incumbent().raise(bound); }));
  }
};

}  // namespace

EMPLACE_PLACER(auto, Auto, .family = "search",
               .summary = "Our own search: improves on the classical placers, and proves a bound.",
               .reference = "emplace", .randomized = true)

}  // namespace emplace
