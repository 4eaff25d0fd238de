// ColocRL: a sequence-to-sequence network decides about groups in turn, taught by REINFORCE.
#include "placers/learned/support/sequence_options.h"

namespace emplace {
namespace {

class ColocRl final : public Placer {
 public:
  struct Options : SequenceOptions<learn::ReinforceSettings> {
    Options() {
      learner.mask_failures_after = 5000;
      learner.baseline_begins_at_signal = false;
    }
    std::int64_t controllers = 1;
    std::int64_t workers = 0;
  };
  static OptionSchema<Options> schema() {
    using Learner = learn::ReinforceSettings;
    // The paper does not say how wide its LSTM is nor how it steps: 512 is that of the same
    // authors' next system, 0.001 is Adam's own rate. Its controllers sample 4 to 8 placements for
    // an update; 280 groups are the most that it has; nothing limits what its rules join.
    return with_sequence_options(
               OptionSchema<Options>{}
                   .integer("controllers", &Options::controllers, 1, kMostControllers,
                            kControllersHelp)
                   .integer("workers", &Options::workers, 0, kMostWorkers, kWorkersHelp)
                   .integer("mask_after", nested(&Options::learner, &Learner::mask_failures_after),
                            0, 1'000'000'000,
                            "Updates after which placements that do not fit are left out.")
                   .choice("baseline",
                           nested(&Options::learner, &Learner::baseline_begins_at_signal),
                           {{"first", false}, {"signal", true}},
                           "Begins with the first costs, or with that of what does not fit."))
        .paper({{"groups", "280"},
                {"largest", "1"},
                {"features", "types_and_shapes"},
                {"waves", "false"},
                {"width", "512"},
                {"sees_group", "false"},
                {"order", "topological"},
                {"blocks", "0"},
                {"samples", "8"},
                {"baseline", "signal"},
                {"lr", "0.001"},
                {"restarts", "false"}});
  }
  explicit ColocRl(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    learn::SamplingSystem system = sequence_system(options_, options_.learner);
    system.controllers = options_.controllers;
    system.workers = options_.workers;
    return place_by_learning("colocrl", context, budget, rng, options_, system);
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(colocrl, ColocRl, .family = "learned",
               .summary = "An attentional LSTM over groups taught by REINFORCE.",
               .reference = "Mirhoseini et al., ICML 2017", .randomized = true, .learns = true)

}  // namespace emplace
