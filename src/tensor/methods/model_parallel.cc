// Model parallelism: every layer by the features that it makes.
#include "tensor/method.h"
#include "tensor/methods/common/by_features.h"

namespace emplace {
namespace {

class ModelParallel final : public PartitionMethod {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit ModelParallel(const Options&) {}

  Plan find(PartitionContext& context, const Budget&, Rng) override {
    return divide_by_features(context, "model-parallel", false);
  }
};

}  // namespace

EMPLACE_PARTITION_METHOD(model_parallel, ModelParallel, .family = "baseline",
                         .summary = "Every layer by the features that it makes.",
                         .reference = "folklore")
}  // namespace emplace
