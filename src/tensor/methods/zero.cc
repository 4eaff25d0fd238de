// Data parallelism whose updates are divided: each worker has a part of the optimizer's state,
// changes its part of the weights and sends it to the others. With `gradients`, gradients are
// reduced to those parts too.
#include "tensor/method.h"
#include "tensor/methods/common/divided_updates.h"
#include "tensor/methods/common/follow_data.h"

namespace emplace {
namespace {

class Zero final : public PartitionMethod {
 public:
  struct Options {
    bool gradients = false;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.flag(
        "gradients", &Options::gradients,
        "Gradients are in parts too (ZeRO's stage 2), not the optimizer's state alone (stage 1).");
  }
  explicit Zero(const Options& options) : options_(options) {}

  Plan find(PartitionContext& context, const Budget&, Rng) override {
    return with_divided_updates(
        context.input(), follow_data(context, "zero", WeightStorage::kEverywhere),
        options_.gradients ? GradientStorage::kInParts : GradientStorage::kAsWeights);
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PARTITION_METHOD(
    zero, Zero, .family = "baseline",
    .summary = "Examples divided, weights everywhere, the optimizer's state in parts.",
    .reference = "Rajbhandari et al., SC 2020 (ZeRO)")
}  // namespace emplace
