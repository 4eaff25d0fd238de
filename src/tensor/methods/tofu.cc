// Tofu (Wang et al. 2019): level by level, each time the cuts that move the fewest bytes.
#include "tensor/method.h"
#include "tensor/methods/common/recursion.h"

namespace emplace {
namespace {

class Tofu final : public PartitionMethod {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit Tofu(const Options&) {}

  Plan find(PartitionContext& context, const Budget& budget, Rng rng) override {
    return cut_level_by_level(
        context, "tofu", [](const Workers& groups) { return Traffic(groups); },
        budget.or_default(kPartitionSeconds), rng);
  }
};

}  // namespace

EMPLACE_PARTITION_METHOD(tofu, Tofu, .family = "recursive",
                         .summary = "Level by level, the cuts that move the fewest bytes.",
                         .reference = "Wang et al., EuroSys 2019")
}  // namespace emplace
