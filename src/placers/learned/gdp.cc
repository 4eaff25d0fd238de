// GDP: a graph network and attention over all ops place the whole graph in one pass, taught by PPO.
//
// The default sizes are the largest that learn from thousands of ops in minutes on a processor. The
// paper counts a placement that does not fit as a fixed bad one (`shortage=signal`), from which
// nothing is learned where no sample fits; here it costs more the more is missing.
#include "placers/learned/support/gdp_options.h"

namespace emplace {
namespace {

class Gdp final : public Placer {
 public:
  using Options = GdpOptions;
  static OptionSchema<Options> schema() { return gdp_schema(); }
  explicit Gdp(const Options& options) : options_(options) {
    if (options.network.width % options.network.heads != 0) {
      fail_option("gdp: width must be a multiple of heads");
    }
  }

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const learn::SamplingSystem system{
        .policy = options_.network,
        .learner = options_.ppo,
        .rounds = {.imitation = {.learning_rate = 3e-3},
                   .restart_entropy = options_.restarts ? GdpOptions::kFrozenEntropy : 0}};
    return place_by_learning("gdp", context, budget, rng, options_,
                             with_policy("gdp", options_, system));
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(gdp, Gdp, .family = "learned",
               .summary = "GraphSAGE and attention in segments over all ops, taught by PPO.",
               .reference = "Zhou et al. 2019", .randomized = true, .learns = true)

}  // namespace emplace
