// The Markov chain search of FlexFlow: Jia, Zaharia, Aiken, "Beyond data and model parallelism for
// deep neural networks", MLSys 2019, for devices alone.
//
// A proposal gives one group of ops another device at random, and is accepted with the probability
// min(1, exp(beta * (cost - cost'))). There is a chain for every start that was given, for an
// expert's placement and for a random one. A chain ends when half of its evaluations have passed
// without a new best, and in any case with the budget. Where the paper leaves open what beta is,
// here it is relative to the start's step time; what overflows is never taken for what
// fits.
#include <algorithm>

#include "placer/placer.h"

#include "placers/local/chains.h"
#include "placers/local/frame.h"
#include "placers/local/starts.h"
#include "placers/local/walk.h"

namespace emplace {
namespace {

class Mcmc final : public Placer {
 public:
  struct Options {
    double beta = 3000;
    std::int64_t patience = 2000;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .real("beta", &Options::beta, 0, 1e9,
              "How unlikely worse placements are: e^-beta for one twice as slow as the start.")
        .integer("patience", &Options::patience, 1, 1'000'000'000,
                 "Evaluations of a chain before it may end for want of a better placement.");
  }
  explicit Mcmc(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

class McmcChain final : public Chain {
 public:
  McmcChain(Evaluator& evaluator, const CoarseGraph& graph, const Solution& start,
            const Mcmc::Options& options, Rng rng)
      : walk_(evaluator, graph, "mcmc", rng), start_(start), options_(options) {
    const double step = static_cast<double>(start.value.step);
    temperature_ = options.beta > 0 ? step / options.beta : step * 1e9;
  }

  void advance(const Turn& turn) override {
    walk_.begin(turn);
    if (!walk_.started()) walk_.go_to(start_);
    while (walk_.more() && !finished()) {
      const Evaluation before = walk_.best().value;
      walk_.step(Neighbourhood::Kind::kRandom, temperature_);
      if (walk_.best().value < before) improved_at_ = walk_.spent();
    }
    // Priorities that were made for the start may no longer suit what was found since.
    if (walk_.spent() < next_order_) return;
    next_order_ = walk_.spent() * 2;
    const Evaluation ordered = walk_.best().value;
    walk_.reorder();
    if (walk_.best().value < ordered) improved_at_ = walk_.spent();
  }
  bool finished() const override {
    return walk_.spent() >= std::max(options_.patience, 2 * improved_at_);
  }
  const Solution* best() const override { return walk_.started() ? &walk_.best() : nullptr; }

 private:
  Walk walk_;
  Solution start_;
  const Mcmc::Options& options_;
  double temperature_;
  std::int64_t improved_at_ = 0;
  std::int64_t next_order_ = 16;
};

PlaceResult Mcmc::place(PlaceContext& context, const Budget& given, Rng rng) {
  const Problem& problem = context.problem();
  const Budget budget = given.or_default();
  begin_search(context);
  const std::vector<std::string> placers{"expert", "random"};
  const std::vector<Solution> starts = starts_of(placers, context, budget, rng.split(0));
  const std::size_t count = chain_count(problem, static_cast<std::int64_t>(starts.size()));
  return search_by_chains(context, budget, count, [&](const CoarseGraph& graph, std::size_t i) {
    return std::make_unique<McmcChain>(context.evaluator(), graph, starts[i], options_,
                                       rng.split(1 + i));
  });
}

}  // namespace

EMPLACE_PLACER(mcmc, Mcmc, .family = "search",
               .summary = "Metropolis search: one group at a time to a random device.",
               .reference = "Jia et al., MLSys 2019 (FlexFlow)", .randomized = true)

}  // namespace emplace
