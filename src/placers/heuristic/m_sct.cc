// m-SCT: earliest task first that keeps a device for the favourite child of what it ran last. Jeon
// et al.: "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, after Hanen,
// Munier: "An approximation algorithm for scheduling dependent tasks on m processors with small
// communication delays", 1995.
#include <algorithm>

#include "placer/placer.h"

#include "placers/common/earliest_task.h"
#include "placers/common/favourite_children.h"
#include "placers/common/list_schedule.h"

namespace emplace {
namespace {

class MSct final : public Placer {
 public:
  struct Options {
    double threshold = 0.1;
    std::int64_t iterations = 40'000;
    bool contention = true;
  };

  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .real("threshold", &Options::threshold, 0, 0.5,
              "A child is a favourite where its variable is at most this.")
        .integer("iterations", &Options::iterations, 1, 1'000'000'000,
                 "Iterations after which the linear program is stopped.")
        .flag("contention", &Options::contention,
              "Let a channel carry one transfer at a time; else transfers never wait.");
  }

  explicit MSct(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

PlaceResult MSct::place(PlaceContext& context, const Budget& budget, Rng) {
  const Problem& problem = context.problem();
  FavouriteOptions favourite{.threshold = options_.threshold, .iterations = options_.iterations};
  if (budget.seconds) {
    favourite.seconds = std::max(0.01, *budget.seconds - budget.elapsed_seconds());
  }
  const FavouriteResult found = find_favourite_children(problem, floating_ops(problem), favourite);
  PlaceResult result = place_by_list(
      problem, context.evaluator(), budget, {.insertion = false, .contention = options_.contention},
      true,
      [&](ListSchedule& schedule) { return EarliestTaskFirst(schedule, &found.favourites).run(); });
  if (!found.solved) {
    result.notes.push_back(
        "the linear program for favourite children is too large for the time: the dearest "
        "transfers "
        "to a child are avoided in its place");
  } else if (!found.optimal) {
    result.notes.push_back(
        "the linear program for favourite children was stopped short of its optimum and its last "
        "solution used; more iterations or time would let it go on");
  }
  return result;
}

}  // namespace

EMPLACE_PLACER(m_sct, MSct, .family = "heuristic",
               .summary = "m-ETF that keeps devices for favourite children.",
               .reference = "Jeon et al., SoCC 2020 (Baechi)")

}  // namespace emplace
