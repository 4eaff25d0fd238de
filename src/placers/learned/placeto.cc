// Placeto: a graph network looks at a whole placement and moves one unit after the other.
#include "placers/learned/support/learned.h"

#include "learn/methods/episodes.h"
#include "learn/units/groupings.h"

namespace emplace {
namespace {

class Placeto final : public Placer {
 public:
  struct Options : GeneralOptions {
    std::int64_t units = 32;
    std::string grouping = "size";
    std::string start = "random";
    std::string reward = "improvement";
    std::string order = "topological";
    std::int64_t workers = 8;
    std::int64_t passes = 1;
    std::int64_t rounds = 8;
    bool pools = true;
    std::string aggregate = "scaled";
    double logit_bound = 0;
    double penalty = 10;
    double cap = 10;
    bool log_runtime = false;
    std::int64_t baseline = 10;
    double entropy = 1;
    double last_entropy = 0.001;
    std::int64_t entropy_decay = 50;
    double grouper_lr = 1e-4;
    double lr = 1e-3;
    double last_lr = 1e-4;
    std::int64_t lr_decay = 1000;
    double clip = 1.25;
    std::int64_t greedy = 10;
  };
  static OptionSchema<Options> schema() {
    return with_general_options(
        OptionSchema<Options>{}
            .integer("units", &Options::units, 1, 2000, "Groups of ops that move, at most.")
            .choice("grouping", &Options::grouping, {"size", "learned"},
                    "Groups of ops as they exchange most, or by a grouper that is taught together "
                    "with the placer (the authors' future work).")
            .choice("start", &Options::start, {"random", "zero", "best", "given"},
                    "Where episodes begin: anywhere, on one device, at the best so far, or at the "
                    "warm start's or --start's placement.")
            .choice("reward", &Options::reward, {"improvement", "terminal", "min"},
                    "Of each step, the final time alone, or the improvement to the best to come.")
            .choice("order", &Options::order, {"topological", "random"}, "In which units move.")
            .integer("workers", &Options::workers, 1, 1000, "Episodes of one gradient step.")
            .integer("passes", &Options::passes, 1, 100, "Moves of each unit in an episode.")
            .integer("rounds", &Options::rounds, 0, 100, "Of messages, in each direction.")
            .flag("pools", &Options::pools, "Pool ancestors, descendants and parallel units.")
            .choice("aggregate", &Options::aggregate, {"sum", "scaled", "mean"},
                    "Of what neighbours say, and of pools.")
            .real("logit_bound", &Options::logit_bound, 0, 1000, "C of C tanh(logits); 0: none.")
            .real("penalty", &Options::penalty, 0, 1e6,
                  "For lacking the smallest device's memory, in times of all ops one by one.")
            .real("cap", &Options::cap, 0.01, 1e6, "On time and penalty, in the same unit.")
            .flag("log_runtime", &Options::log_runtime, "Rewards from the time's logarithm.")
            .integer("baseline", &Options::baseline, 1, 100'000,
                     "Episodes that it averages; the last alone where groups are learned.")
            .real("entropy", &Options::entropy, 0, 1000, "Weight of the entropy, at first.")
            .real("last_entropy", &Options::last_entropy, 0, 1000, "And after its decay.")
            .integer("entropy_decay", &Options::entropy_decay, 1, 1'000'000, "In episodes.")
            .real("grouper_lr", &Options::grouper_lr, 1e-6, 1, "Of a learned grouping.")
            .real("lr", &Options::lr, 1e-6, 1, "Learning rate, at first.")
            .real("last_lr", &Options::last_lr, 1e-6, 1, "And after its decay.")
            .integer("lr_decay", &Options::lr_decay, 1, 1'000'000, "In episodes.")
            .real("clip", &Options::clip, 0, 1e6, "Largest norm of a gradient; 0: any.")
            .integer("greedy", &Options::greedy, 0, 1'000'000,
                     "Episodes between those without chance; 0: none."));
  }
  explicit Placeto(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const Problem& problem = context.problem();
    const auto make = [&](const std::string& device, Rng& weights) {
      return learn::placeto_episodes(grouping(problem), settings(), device, weights);
    };
    return place_by_learning("placeto", context, budget, rng, options_,
                             with_policy("placeto", problem, options_, make));
  }

 private:
  bool learns_groups() const { return options_.grouping == "learned"; }
  learn::UnitGraph grouping(const Problem& problem) const {
    return learns_groups() ? learn::group_by_colocation(problem)
                           : learn::group_to_size(problem, options_.units);
  }
  learn::EpisodeSettings settings() const {
    return {.network = {.rounds = options_.rounds,
                        .pools = options_.pools,
                        .aggregate = aggregate(),
                        .logit_bound = options_.logit_bound},
            .learned_groups = learns_groups() ? options_.units : 0,
            .grouper_learning_rate = options_.grouper_lr,
            .workers = options_.workers,
            .passes = options_.passes,
            .random_order = options_.order == "random",
            .start = start(),
            .reward = reward(),
            .runtime = {.penalty = options_.penalty,
                        .cap = options_.cap,
                        .logarithm = options_.log_runtime},
            .baseline_episodes = options_.baseline,
            .entropy_weight = options_.entropy,
            .entropy_episodes = options_.entropy_decay,
            .last_entropy_weight = options_.last_entropy,
            .learning_rate = options_.lr,
            .last_learning_rate = options_.last_lr,
            .learning_episodes = options_.lr_decay,
            .clip_norm = options_.clip,
            .greedy_every = options_.greedy};
  }
  learn::Aggregate aggregate() const {
    if (options_.aggregate == "sum") return learn::Aggregate::kSum;
    if (options_.aggregate == "mean") return learn::Aggregate::kMean;
    return learn::Aggregate::kScaledSum;
  }
  learn::EpisodeStart start() const {
    // A warm start is a start, unless another was asked for.
    const bool warm = options_.warm_start != "none" && options_.start == "random";
    if (warm || options_.start == "given") return learn::EpisodeStart::kGiven;
    if (options_.start == "zero") return learn::EpisodeStart::kZero;
    if (options_.start == "best") return learn::EpisodeStart::kBest;
    return learn::EpisodeStart::kRandom;
  }
  learn::EpisodeReward reward() const {
    if (options_.reward == "terminal") return learn::EpisodeReward::kTerminal;
    if (options_.reward == "min") return learn::EpisodeReward::kMinimum;
    return learn::EpisodeReward::kImprovement;
  }

  Options options_;
};

}  // namespace

EMPLACE_PLACER(placeto, Placeto, .family = "learned",
               .summary = "A graph network improves a placement unit by unit.",
               .reference = "Addanki et al., NeurIPS 2019", .randomized = true)

}  // namespace emplace
