// One weird trick (Krizhevsky 2014): convolutions by examples, dense layers by the features that
// they make.
#include "tensor/method.h"
#include "tensor/methods/common/by_features.h"

namespace emplace {
namespace {

class OneWeirdTrick final : public PartitionMethod {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit OneWeirdTrick(const Options&) {}

  Plan find(PartitionContext& context, const Budget&, Rng) override {
    return divide_by_features(context, "one-weird-trick", true);
  }
};

}  // namespace

EMPLACE_PARTITION_METHOD(one_weird_trick, OneWeirdTrick, .family = "baseline",
                         .summary = "Convolutions by examples, dense layers by features.",
                         .reference = "Krizhevsky 2014")
}  // namespace emplace
