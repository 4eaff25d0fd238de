// Data parallelism: examples are divided, weights are everywhere, their gradients are added up.
#include "tensor/method.h"
#include "tensor/methods/common/follow_data.h"

namespace emplace {
namespace {

class DataParallel final : public PartitionMethod {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit DataParallel(const Options&) {}

  Plan find(PartitionContext& context, const Budget&, Rng) override {
    return follow_data(context, "data-parallel", WeightStorage::kEverywhere);
  }
};

}  // namespace

EMPLACE_PARTITION_METHOD(data_parallel, DataParallel, .family = "baseline",
                         .summary = "Examples divided, weights everywhere.",
                         .reference = "folklore")
}  // namespace emplace
