// Mars (Lan, Chen, Li, ICPP 2021): single ops, a graph encoder pre-trained by deep graph infomax, a
// sequence-to-sequence network over segments of the ops, taught by PPO with clipping. The paper's
// comparison is in the options: no pre-training, and the designs of HDP and GDP under the same PPO.
#include <utility>

#include "placer/placer.h"

#include "placers/learned/support/learned.h"

#include "learn/learners/ppo.h"
#include "learn/policies/grouper_placer.h"
#include "learn/policies/segment_attention.h"
#include "learn/policies/segment_seq2seq.h"
#include "learn/units/groupings.h"

namespace emplace {
namespace {

// Where all decisions together hold less, in nats, the policy has all but decided: what is left of
// the budget is better spent on a new one.
constexpr double kFrozenEntropy = 2;

class Mars final : public Placer {
 public:
  struct Options : GeneralOptions {
    std::string design = "mars";
    std::int64_t width = 64;
    std::int64_t encoder_width = 64;
    std::int64_t layers = 3;
    std::int64_t segment = 128;
    std::string order = "locality";
    double blocks = 16;
    std::int64_t pretrain = 1000;
    std::int64_t samples = 20;
    std::int64_t epochs = 4;
    double lr = 3e-4;
    double entropy = 1e-3;
    double clip = 0.2;
    double kl = 0.01;
    std::string shortage = "penalty";
    bool restarts = true;
  };
  static OptionSchema<Options> schema() {
    return with_general_options(
        OptionSchema<Options>{}
            .choice("design", &Options::design, {"mars", "grouper_placer", "encoder_placer"},
                    "The policy: Mars's own, HDP's or GDP's.")
            .integer("width", &Options::width, 2, 4096, "Of the sequence network; even.")
            .integer("encoder_width", &Options::encoder_width, 1, 4096, "Of the graph encoder.")
            .integer("layers", &Options::layers, 1, 16, "Of the graph encoder.")
            .integer("segment", &Options::segment, 1, 1'000'000, "Ops in a segment.")
            .choice("order", &Options::order, {"locality", "topological"},
                    "Of the ops: those that exchange much near each other, or as they run.")
            .real("blocks", &Options::blocks, 0, 1e9,
                  "How often the device changes along the ops at first; 0: at random.")
            .integer("pretrain", &Options::pretrain, 0, 1'000'000,
                     "Iterations of deep graph infomax at most; 0: Mars without pre-training.")
            .integer("samples", &Options::samples, 2, 10'000, "Placements in an update.")
            .integer("epochs", &Options::epochs, 1, 1000, "Gradient steps in an update.")
            .real("lr", &Options::lr, 1e-9, 10, "Learning rate (Adam).")
            .real("entropy", &Options::entropy, 0, 10, "Weight of the entropy.")
            .real("clip", &Options::clip, 0.001, 10, "How far a ratio counts.")
            .real("kl", &Options::kl, 0, 10,
                  "How far an update goes, as a share of the entropy; 0: the rate stays.")
            .choice("shortage", &Options::shortage, {"penalty", "signal"},
                    "What does not fit costs its time and what is missing, or a fixed value.")
            .flag("restarts", &Options::restarts,
                  "Begin anew when the policy has all but decided."));
  }
  explicit Mars(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const Problem& problem = context.problem();
    const auto make = [&](const std::string& device, Rng& weights) {
      return learn::sample_and_learn(
          policy(problem, device, weights), learner(problem),
          {.imitation = {.learning_rate = 3e-3},
           .restart_entropy = options_.restarts ? kFrozenEntropy / problem.num_groups() : 0});
    };
    return place_by_learning("mars", context, budget, rng, options_,
                             with_policy("mars", problem, options_, make));
  }

 private:
  learn::PolicyPtr policy(const Problem& problem, const std::string& device, Rng& rng) const {
    learn::UnitGraph units = learn::group_by_colocation(problem);
    const std::int64_t width = options_.width + options_.width % 2;
    if (options_.design == "grouper_placer") {
      return learn::grouper_placer_policy(
          std::move(units), {.width = width, .noisy_rounds = 0, .shards = 2}, device, rng);
    }
    if (options_.design == "encoder_placer") {
      return learn::segment_attention_policy(std::move(units),
                                             {.sage_width = options_.encoder_width,
                                              .sage_layers = options_.layers,
                                              .width = width,
                                              .heads = width % 4 == 0 ? 4 : 1,
                                              .segment = options_.segment},
                                             device, rng);
    }
    return learn::segment_sequence_policy(std::move(units),
                                          {.encoder_layers = options_.layers,
                                           .encoder_width = options_.encoder_width,
                                           .width = width,
                                           .segment = options_.segment,
                                           .by_locality = options_.order == "locality",
                                           .blocks = options_.blocks,
                                           .pretraining = options_.pretrain},
                                          device, rng);
  }

  learn::LearnerPtr learner(const Problem& problem) const {
    learn::PpoSettings settings;
    settings.batch = options_.samples;
    settings.epochs = options_.epochs;
    settings.optimizer = {.learning_rate = options_.lr, .clip_norm = 1};
    settings.cost.shortage =
        options_.shortage == "penalty" ? learn::Shortage::kPenalty : learn::Shortage::kSignal;
    settings.entropy_weight = options_.entropy;
    settings.clip = options_.clip;
    settings.kl_share = options_.kl;
    return learn::ppo(problem, settings);
  }

  Options options_;
};

}  // namespace

EMPLACE_PLACER(mars, Mars, .family = "learned",
               .summary =
                   "Pre-trained graph convolutions, then segments of ops to devices by an "
                   "LSTM with attention; PPO.",
               .reference = "Lan, Chen, Li, ICPP 2021", .randomized = true)

}  // namespace emplace
