// ColocRL: a sequence-to-sequence network decides about groups in turn, taught by REINFORCE.
#include "placers/learned/support/learned.h"

#include "learn/groupings.h"
#include "learn/learners/reinforce.h"
#include "learn/policies/seq2seq.h"

namespace emplace {
namespace {

// Below it the network has all but decided: what is left of the budget is better spent on a new
// one.
constexpr double kFrozenEntropy = 0.01;

class ColocRl final : public Placer {
 public:
  struct Options : LearnedOptions {
    std::int64_t groups = 200;
    std::int64_t width = 64;
    bool sees_group = true;
    std::string order = "locality";
    double blocks = 16;
    std::int64_t samples = 20;
    double lr = 3e-3;
    double clip = 1;
    double entropy = 0;
    std::int64_t mask_after = 5000;
    bool restarts = true;
  };
  static OptionSchema<Options> schema() {
    return with_learned_options(
        OptionSchema<Options>{}
            .integer("groups", &Options::groups, 1, 2000, "Groups of ops, at most.")
            .integer("width", &Options::width, 1, 4096, "Of the LSTM's state.")
            .flag("sees_group", &Options::sees_group,
                  "The decoder gets the features of the group that it decides about.")
            .choice("order", &Options::order, {"locality", "topological"},
                    "Of the groups: those that exchange much together, or as they run.")
            .real("blocks", &Options::blocks, 0, 1e9,
                  "How often the device changes along the sequence at first; 0: as chance has it.")
            .integer("samples", &Options::samples, 1, 10'000, "K: placements per update.")
            .real("lr", &Options::lr, 1e-6, 1, "Adam's learning rate.")
            .real("clip", &Options::clip, 0, 1e6, "Largest norm of a gradient; 0: any.")
            .real("entropy", &Options::entropy, 0, 10, "Weight of an entropy bonus.")
            .integer("mask_after", &Options::mask_after, 0, 1'000'000'000,
                     "Updates after which placements that do not fit are left out.")
            .flag("restarts", &Options::restarts,
                  "Begin anew when the policy has all but decided."));
  }
  explicit ColocRl(const Options& options) : options_(options) {}

  PlaceResult place(const Problem& problem, Evaluator& evaluator, const Budget& budget,
                    Rng rng) override {
    const auto make = [&](const std::string& device, Rng& weights) {
      const learn::ColocationRules rules{.most_units = options_.groups};
      const learn::ReinforceSettings reinforce{
          .batch = options_.samples,
          .optimizer = {.learning_rate = options_.lr, .clip_norm = options_.clip},
          .entropy_weight = options_.entropy,
          .mask_failures_after = options_.mask_after};
      return learn::sample_and_learn(
          learn::sequence_policy(learn::group_as_colocrl(problem, rules),
                                 {.width = options_.width,
                                  .decoder_sees_unit = options_.sees_group,
                                  .by_locality = options_.order == "locality",
                                  .blocks = options_.blocks},
                                 device, weights),
          learn::reinforce(problem, reinforce),
          {.restart_entropy = options_.restarts ? kFrozenEntropy : 0});
    };
    return place_by_learning("colocrl", evaluator, budget, rng, options_, make);
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(colocrl, ColocRl, .family = "learned",
               .summary = "An attentional LSTM over groups taught by REINFORCE.",
               .reference = "Mirhoseini et al., ICML 2017", .randomized = true)

}  // namespace emplace
