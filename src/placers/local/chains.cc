#include "placers/local/chains.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/parallel.h"

#include "placers/local/frame.h"

namespace emplace {
namespace {

constexpr std::int64_t kOpsPerTurn = 2'000'000;  // that a turn simulates, about
constexpr std::int64_t kShortestTurn = 8;
constexpr std::int64_t kLongestTurn = 512;
// Of every chain, so that it can follow its progress.
constexpr std::int64_t kLeastTurns = 64;
constexpr OpId kOpsForOneChain = 200'000;

// How much of the budget has gone since this was made.
class BudgetProgress {
 public:
  BudgetProgress(const Budget& budget, std::int64_t evaluations)
      : budget_(budget), seconds_(budget.elapsed_seconds()), evaluations_(evaluations) {}

  double at(std::int64_t evaluations) const {
    double progress = 0;
    if (budget_.seconds) {
      progress = share(budget_.elapsed_seconds() - seconds_, *budget_.seconds - seconds_);
    }
    if (budget_.evaluations) {
      const auto done = static_cast<double>(evaluations - evaluations_);
      const auto all = static_cast<double>(*budget_.evaluations - evaluations_);
      progress = std::max(progress, share(done, all));
    }
    return progress;
  }

 private:
  static double share(double done, double all) {
    return all > 0 ? std::clamp(done / all, 0.0, 1.0) : 1.0;
  }

  const Budget& budget_;
  double seconds_;
  std::int64_t evaluations_;
};

std::int64_t turn_length(const Problem& problem, const Budget& budget, std::int64_t evaluations,
                         std::size_t chains) {
  const auto ops = std::max<std::int64_t>(1, problem.num_ops());
  std::int64_t length = std::clamp(kOpsPerTurn / ops, kShortestTurn, kLongestTurn);
  if (budget.evaluations) {
    const std::int64_t left = *budget.evaluations - evaluations;
    length = std::min(length, left / (static_cast<std::int64_t>(chains) * kLeastTurns));
  }
  return std::max<std::int64_t>(1, length);
}

}  // namespace

void run_chains(const std::vector<std::unique_ptr<Chain>>& chains, PlaceContext& context,
                const Budget& budget) {
  Incumbent& incumbent = context.incumbent();
  std::optional<Solution> best = incumbent.best();
  EMPLACE_CHECK(best.has_value());
  Budget clock = budget;
  clock.evaluations.reset();
  const std::int64_t before = context.evaluations();
  const BudgetProgress progress(budget, before);
  const std::int64_t length = turn_length(context.problem(), budget, before, chains.size());
  std::vector<Chain*> active;
  while (!budget.spent(context.evaluations()) && !incumbent.optimal()) {
    // What others have handed in since the chains last met.
    if (incumbent.value() < best->value) best = incumbent.best();
    active.clear();
    for (const auto& chain : chains) {
      if (!chain->finished()) active.push_back(chain.get());
    }
    if (budget.evaluations) {
      const std::int64_t turns =
          (*budget.evaluations - context.evaluations() + length - 1) / length;
      active.resize(std::min(active.size(), static_cast<std::size_t>(turns)));
    }
    if (active.empty()) return;
    Turn turn{.evaluations = length,
              .progress = progress.at(context.evaluations()),
              .best = &*best,
              .clock = &clock};
    if (budget.evaluations) {
      const std::int64_t left = *budget.evaluations - context.evaluations();
      turn.evaluations = std::min(length, left / static_cast<std::int64_t>(active.size()));
      turn.evaluations = std::max<std::int64_t>(1, turn.evaluations);
    }
    parallel_for(active.size(), budget.threads, [&](std::size_t i) { active[i]->advance(turn); });
    bool better = false;
    for (const Chain* chain : active) {
      if (chain->best() != nullptr && chain->best()->value < incumbent.value()) {
        better = incumbent.offer(*chain->best()) || better;
      }
    }
    if (better) best = incumbent.best();
  }
}

PlaceResult search_by_chains(PlaceContext& context, const Budget& budget, std::size_t count,
                             const MakeChain& make) {
  if (!worth_searching(context, budget)) return end_search(context);
  const CoarseGraph graph = build_coarse_graph(context.problem());
  std::vector<std::unique_ptr<Chain>> chains;
  for (std::size_t i = 0; i < count; ++i) chains.push_back(make(graph, i));
  run_chains(chains, context, budget);
  return end_search(context);
}

std::size_t chain_count(const Problem& problem, std::int64_t wanted) {
  return problem.num_ops() > kOpsForOneChain ? 1 : static_cast<std::size_t>(wanted);
}

}  // namespace emplace
