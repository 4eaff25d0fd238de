// Tofu's recursion, but by the time that what moves takes on the cluster's links.
#include "tensor/method.h"
#include "tensor/methods/common/recursion.h"

namespace emplace {
namespace {

class RecursiveByTime final : public PartitionMethod {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit RecursiveByTime(const Options&) {}

  Plan find(PartitionContext& context, const Budget& budget, Rng rng) override {
    // A group talks through its first worker's links; what is cut later divides what they carry.
    const auto on_links = [&](const Workers& groups) {
      const Worker size = context.workers().count() / groups.count();
      std::vector<DeviceId> devices;
      for (Worker group = 0; group < groups.count(); ++group) {
        devices.push_back(context.devices()[group * size]);
      }
      return Traffic(groups, context.cluster(), devices);
    };
    return cut_level_by_level(context, "recursive-by-time", on_links,
                              budget.or_default(kPartitionSeconds), rng);
  }
};

}  // namespace

EMPLACE_PARTITION_METHOD(recursive_by_time, RecursiveByTime, .family = "recursive",
                         .summary = "Level by level, the cuts that move tensors the soonest.",
                         .reference = "emplace, after Wang et al., EuroSys 2019")
}  // namespace emplace
