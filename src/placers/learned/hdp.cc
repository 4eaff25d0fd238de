// HDP: a learned grouper and a sequence-to-sequence placer, taught together by REINFORCE with a
// moving baseline (Mirhoseini et al., ICLR 2018). A round is a grouping and several placements of
// it.
#include "placers/learned/support/hdp_options.h"

namespace emplace {
namespace {

class Hdp final : public Placer {
 public:
  using Options = HdpOptions;
  static OptionSchema<Options> schema() { return hdp_schema(); }
  explicit Hdp(const Options& options) : options_(options) {
    options_.network.width += options_.network.width % 2;
    options_.network.shards = options_.groupings > 1 ? 2 : 1;
    options_.learner.batch = options_.groupings * options_.network.share_grouping;
  }

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    learn::ReinforceSettings reinforce = learn::reinforce_as(options_.learner);
    reinforce.mask_failures_after = options_.mask_after;
    reinforce.baseline_begins_at_signal = true;  // where there is one, as in the public code
    learn::SamplingSystem system{.policy = options_.network, .learner = reinforce};
    system.controllers = options_.controllers;
    system.workers = options_.workers;
    if (options_.with_ppo) system.learner = options_.learner;
    return place_by_learning("hdp", context, budget, rng, options_, system);
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(hdp, Hdp, .family = "learned",
               .summary = "A learned grouper, and a sequence-to-sequence placer of its groups.",
               .reference = "Mirhoseini et al., ICLR 2018", .randomized = true, .learns = true)

}  // namespace emplace
