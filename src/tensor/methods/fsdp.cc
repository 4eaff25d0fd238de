// Data parallelism with weights, gradients and the optimizer's state in parts: each worker keeps
// one and is sent the others when it needs them. With `hold`, once a step.
#include "tensor/method.h"
#include "tensor/methods/common/follow_data.h"

namespace emplace {
namespace {

class Fsdp final : public PartitionMethod {
 public:
  struct Options {
    bool hold = false;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.flag(
        "hold", &Options::hold,
        "Weights are fetched once a step and kept (ZeRO's stage 2), not for each use (stage 3).");
  }
  explicit Fsdp(const Options& options) : options_(options) {}

  Plan find(PartitionContext& context, const Budget&, Rng) override {
    return follow_data(context, "fsdp",
                       options_.hold ? WeightStorage::kInPartsHeld : WeightStorage::kInParts);
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PARTITION_METHOD(fsdp, Fsdp, .family = "baseline",
                         .summary = "Examples divided, weights in parts that are fetched.",
                         .reference = "Rajbhandari et al., SC 2020 (ZeRO)")
}  // namespace emplace
