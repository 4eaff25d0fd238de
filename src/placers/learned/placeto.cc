// Placeto: a graph network looks at a whole placement and moves one unit after the other.
#include "base/error.h"

#include "placers/learned/support/learned.h"

namespace emplace {
namespace {

enum class UnitsOf { kSize, kColocRl, kLearned };

class Placeto final : public Placer {
 public:
  struct Options : GeneralOptions {
    std::int64_t most_units = 32;
    UnitsOf grouping = UnitsOf::kSize;
    learn::EpisodeSettings episodes = {.entropy_episodes = 50, .last_entropy_weight = 0.001};
  };
  static OptionSchema<Options> schema() {
    using Episodes = learn::EpisodeSettings;
    using Network = learn::MessagePassingSettings;
    using Runtime = learn::RuntimeSettings;
    using learn::Aggregate;
    using learn::EpisodeReward;
    using learn::EpisodeStart;
    // A member of the episodes, or of what they have.
    const auto of = [](auto... members) { return nested(&Options::episodes, members...); };
    return with_general_options(
               OptionSchema<Options>{}
                   .integer("units", &Options::most_units, 1, 2000,
                            "Groups of ops that move, at most.")
                   .choice("grouping", &Options::grouping,
                           {{"size", UnitsOf::kSize},
                            {"colocrl", UnitsOf::kColocRl},
                            {"learned", UnitsOf::kLearned}},
                           "Groups of ops as they exchange most, by ColocRL's rules first, or by a "
                           "grouper that is taught together with the placer (the authors' future "
                           "work).")
                   .choice("start", of(&Episodes::start),
                           {{"random", EpisodeStart::kRandom},
                            {"zero", EpisodeStart::kZero},
                            {"best", EpisodeStart::kBest},
                            {"given", EpisodeStart::kGiven}},
                           "Where episodes begin: anywhere, on one device, at the best so far, or "
                           "at a given or warm start's placement.")
                   .choice("reward", of(&Episodes::reward),
                           {{"improvement", EpisodeReward::kImprovement},
                            {"terminal", EpisodeReward::kTerminal},
                            {"min", EpisodeReward::kMinimum}},
                           "Of each step, the final time alone, or the improvement to the best to "
                           "come.")
                   .choice("order", of(&Episodes::random_order),
                           {{"topological", false}, {"random", true}}, "In which units move.")
                   .integer("workers", of(&Episodes::workers), 1, 1000,
                            "Episodes of one gradient step.")
                   .integer("passes", of(&Episodes::passes), 1, 100,
                            "Moves of each unit in an episode.")
                   .integer("rounds", of(&Episodes::network, &Network::rounds), 0, 100,
                            "Of messages, in each direction.")
                   .flag("pools", of(&Episodes::network, &Network::pools),
                         "Pool ancestors, descendants and parallel units.")
                   .choice("aggregate", of(&Episodes::network, &Network::aggregate),
                           {{"sum", Aggregate::kSum},
                            {"scaled", Aggregate::kScaledSum},
                            {"mean", Aggregate::kMean}},
                           "Of what neighbours say, and of pools.")
                   .real("logit_bound", of(&Episodes::network, &Network::logit_bound), 0, 1000,
                         "C of C tanh(logits); 0: none.")
                   .choice("costs", of(&Episodes::runtime, &Runtime::in_seconds),
                           {{"relative", false}, {"seconds", true}},
                           "Of placements: in times of all ops one by one, or in seconds.")
                   .real("penalty", of(&Episodes::runtime, &Runtime::penalty), 0, 1e6,
                         "For lacking the smallest device's memory, or for a lacking GB where "
                         "costs are in seconds.")
                   .real("cap", of(&Episodes::runtime, &Runtime::cap), 0.01, 1e6,
                         "On time and penalty, in the unit of costs.")
                   .flag("count_stays", of(&Episodes::count_stays),
                         "Steps that move nothing are evaluated and count as placements too.")
                   .flag("log_runtime", of(&Episodes::runtime, &Runtime::logarithm),
                         "Rewards from the time's logarithm.")
                   .integer("baseline", of(&Episodes::baseline_episodes), 1, 100'000,
                            "Episodes that it averages; the last alone where groups are learned.")
                   .real("entropy", of(&Episodes::entropy_weight), 0, 1000,
                         "Weight of the entropy, at first.")
                   .real("last_entropy", of(&Episodes::last_entropy_weight), 0, 1000,
                         "And after its decay.")
                   .integer("entropy_decay", of(&Episodes::entropy_episodes), 1, 1'000'000,
                            "In episodes.")
                   .real("grouper_lr", of(&Episodes::grouper_learning_rate), 1e-6, 1,
                         "Of a learned grouping.")
                   .real("lr", of(&Episodes::learning_rate), 1e-6, 1, "Learning rate, at first.")
                   .real("last_lr", of(&Episodes::last_learning_rate), 1e-6, 1,
                         "And after its decay.")
                   .integer("lr_decay", of(&Episodes::learning_episodes), 1, 1'000'000,
                            "In episodes.")
                   .real("clip", of(&Episodes::clip_norm), 0, 1e6,
                         "Largest norm of a gradient; 0: any.")
                   .integer("greedy", of(&Episodes::greedy_every), 0, 1'000'000,
                            "Episodes between those without chance; 0: none."))
        // As in the authors' code. Not said there: how many units there are after merging (100 is
        // between ColocRL's 83 and 280) and over how many episodes rates fall, which are as ours.
        // The penalty is for what a device lacks; the code has limits of 8 and 11 GB for a device
        // of 12.
        .paper({{"units", "100"},
                {"grouping", "colocrl"},
                {"aggregate", "sum"},
                {"costs", "seconds"},
                {"penalty", "2"},
                {"count_stays", "true"},
                {"greedy", "1000"}});
  }
  explicit Placeto(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    check_start(context);
    learn::EpisodeSystem system{.units = units(), .episodes = options_.episodes};
    if (options_.grouping == UnitsOf::kLearned) {
      system.episodes.learned_groups = options_.most_units;
    }
    // A warm start is a start, unless another was asked for.
    if (options_.warm_start != "none" && system.episodes.start == learn::EpisodeStart::kRandom) {
      system.episodes.start = learn::EpisodeStart::kGiven;
    }
    return place_by_learning("placeto", context, budget, rng, options_,
                             with_policy("placeto", options_, system));
  }

 private:
  // Whoever helps another rank begins where that one says.
  void check_start(PlaceContext& context) const {
    const bool needed = options_.episodes.start == learn::EpisodeStart::kGiven &&
                        options_.warm_start == "none" && options_.policy.empty();
    if (needed && context.starts().empty() && context.learning().task == nullptr) {
      fail_option("start=given needs a placement to begin from, and there is none");
    }
  }
  learn::GroupingSettings units() const {
    switch (options_.grouping) {
      case UnitsOf::kColocRl:
        return learn::ColocationRules{.most_units = options_.most_units, .acyclic = true};
      case UnitsOf::kLearned:
        return learn::ByColocation{};
      case UnitsOf::kSize:
        break;
    }
    return learn::UpToSize{.most_units = options_.most_units, .acyclic = true};
  }

  Options options_;
};

}  // namespace

EMPLACE_PLACER(placeto, Placeto, .family = "learned",
               .summary = "A graph network improves a placement unit by unit.",
               .reference = "Addanki et al., NeurIPS 2019", .randomized = true, .learns = true)

}  // namespace emplace
