// First-improvement local search with kicks (iterated local search: Lourenco, Martin, Stuetzle
// 2003). Takes every move that is no worse. When many in a row bring nothing, the place is kept if
// it is the best of this climb, else given up for that; then a few moves are made however bad they
// are, and it climbs again, with clusters of groups of another size. After several vain kicks it
// begins elsewhere: at the next classical start, and when there are no more, at the best of all
// climbs after many more moves.
#include <algorithm>
#include <cmath>

#include "placer/placer.h"

#include "placers/local/chains.h"
#include "placers/local/frame.h"
#include "placers/local/starts.h"
#include "placers/local/walk.h"

namespace emplace {
namespace {

constexpr std::int64_t kLeastPatience = 32;  // moves in a row that bring nothing
constexpr std::int64_t kMostPatience = 2000;
constexpr double kFewestClusters = 64;
constexpr std::uint64_t kStrongestKick = 4;
constexpr std::uint64_t kRestartKick = 16;
constexpr std::size_t kMostStarts = 16;

class HillClimb final : public Placer {
 public:
  struct Options {
    std::int64_t kicks = 20;
    std::int64_t chains = 4;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .integer("kicks", &Options::kicks, 0, 1'000'000, "Vain ones before it begins elsewhere.")
        .integer("chains", &Options::chains, 1, 64, "Independent climbs, from different starts.");
  }
  explicit HillClimb(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

struct Plan {
  std::size_t first;  // of the starts, then every `stride`-th after it
  std::size_t stride;
  std::int64_t kicks;
};

class Climb final : public Chain {
 public:
  Climb(Evaluator& evaluator, const CoarseGraph& graph, const std::vector<Solution>& starts,
        const Plan& plan, Rng rng)
      : problem_(evaluator.problem()),
        walk_(evaluator, graph, "hill_climb", rng),
        starts_(starts),
        plan_(plan),
        next_start_(plan.first) {}

  void advance(const Turn& turn) override {
    walk_.begin(turn);
    if (!walk_.started()) restart(*turn.best);
    while (walk_.more()) {
      const Evaluation before = walk_.value();
      walk_.step(0);
      idle_ = walk_.value() < before ? 0 : idle_ + 1;
      if (idle_ > patience_) leave_top(*turn.best);
    }
  }
  bool finished() const override { return false; }
  const Solution* best() const override { return walk_.started() ? &walk_.best() : nullptr; }

 private:
  void restart(const Solution& best) {
    if (next_start_ < starts_.size()) {
      walk_.go_to(starts_[next_start_]);
      next_start_ += plan_.stride;
    } else {
      walk_.go_to(best);
      kick(kRestartKick);
    }
    begin_climb();
    top_ = walk_.here();
    vain_ = 0;
  }

  void leave_top(const Solution& best) {
    walk_.reorder();
    if (walk_.value() < top_.value) {
      top_ = walk_.here();
      vain_ = 0;
    } else if (++vain_ > plan_.kicks) {
      restart(best);
      return;
    } else {
      walk_.go_to(top_);
    }
    kick(1 + walk_.rng().below(kStrongestKick));
    begin_climb();
  }

  void kick(std::uint64_t moves) {
    for (std::uint64_t i = 0; i < moves && walk_.more(); ++i) walk_.kick();
  }
  void begin_climb() {
    idle_ = 0;
    const double groups = std::max(1.0, static_cast<double>(problem_.num_groups()));
    const double fewest = std::min(groups, kFewestClusters);
    const double clusters = fewest * std::pow(groups / fewest, walk_.rng().uniform());
    walk_.cluster(static_cast<std::uint32_t>(std::ceil(clusters)));
    const std::int64_t moves =
        std::int64_t{walk_.neighbourhood().clusters().size()} * (problem_.num_devices() - 1);
    patience_ = std::clamp(moves, kLeastPatience, kMostPatience);
    walk_.focus();
  }

  const Problem& problem_;
  Walk walk_;
  const std::vector<Solution>& starts_;
  Plan plan_;
  std::size_t next_start_;
  std::int64_t patience_ = 0;
  Solution top_;
  std::int64_t idle_ = 0;
  std::int64_t vain_ = 0;
};

PlaceResult HillClimb::place(PlaceContext& context, const Budget& given, Rng rng) {
  const Problem& problem = context.problem();
  const Budget budget = given.or_default();
  begin_search(context);
  const std::vector<Solution> starts = classical_starts(context, budget, rng.split(0), kMostStarts);
  const std::size_t count = chain_count(problem, options_.chains);
  return search_by_chains(context, budget, count, [&](const CoarseGraph& graph, std::size_t i) {
    const Plan plan{.first = i, .stride = count, .kicks = options_.kicks};
    return std::make_unique<Climb>(context.evaluator(), graph, starts, plan, rng.split(1 + i));
  });
}

}  // namespace

EMPLACE_PLACER(hill_climb, HillClimb, .family = "search",
               .summary = "Local search that takes the first move that is no worse, with kicks.",
               .reference = "Lourenco, Martin, Stuetzle 2003", .randomized = true)

}  // namespace emplace
