// ColocRL: a sequence-to-sequence network decides about groups in turn, taught by REINFORCE.
#include "placers/learned/support/sequence_options.h"

#include "learn/learners/reinforce.h"

namespace emplace {
namespace {

class ColocRl final : public Placer {
 public:
  struct Options : SequenceOptions {
    std::int64_t mask_after = 5000;
  };
  static OptionSchema<Options> schema() {
    return with_sequence_options(OptionSchema<Options>{}.integer(
        "mask_after", &Options::mask_after, 0, 1'000'000'000,
        "Updates after which placements that do not fit are left out."));
  }
  explicit ColocRl(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const Problem& problem = context.problem();
    const auto make = [&](const std::string& device, Rng& weights) {
      const learn::ReinforceSettings reinforce{
          .batch = options_.samples,
          .optimizer = {.learning_rate = options_.lr, .clip_norm = options_.clip},
          .entropy_weight = options_.entropy,
          .mask_failures_after = options_.mask_after};
      return learn_sequences(problem, options_, learn::reinforce(problem, reinforce), device,
                             weights);
    };
    return place_by_learning("colocrl", context, budget, rng, options_, make);
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(colocrl, ColocRl, .family = "learned",
               .summary = "An attentional LSTM over groups taught by REINFORCE.",
               .reference = "Mirhoseini et al., ICML 2017", .randomized = true)

}  // namespace emplace
