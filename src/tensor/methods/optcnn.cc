// OptCNN (Jia et al. 2018): the output dimensions of every operator on all levels at once, by the
// time of computing, synchronising weights and moving tensors.
#include "tensor/method.h"
#include "tensor/methods/all.h"
#include "tensor/methods/common/joint_search.h"

namespace emplace {
namespace {

class OptCnn final : public PartitionMethod {
 public:
  struct Options {
    // All there are on eight devices: three levels of five variables, or none.
    std::int64_t ways = 216;
    std::int64_t rounds = JointSearchSettings{}.rounds;
    bool free_backward = false;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .integer("ways", &Options::ways, 1, 1'000'000,
                 "Ways to cut a tensor or an op that are all weighed; of more, those near the best "
                 "known.")
        .integer("rounds", &Options::rounds, 1, 1000, "Times to look around the best known.")
        .flag("free_backward", &Options::free_backward,
              "Gradients of a layer may be divided otherwise than the layer, which the paper has "
              "not.");
  }
  explicit OptCnn(const Options& options) : options_(options) {}

  Plan find(PartitionContext& context, const Budget& given, Rng rng) override {
    const Budget budget = given.or_default(kPartitionSeconds);
    std::vector<Plan> starts;
    for (const char* key : {"data-parallel", "equal-chop"}) {
      starts.push_back(all_partition_methods().make({key})->find(context, budget, rng));
    }
    for (const PlanSolution& start : context.starts()) starts.push_back(start.plan);
    // It divides a layer by its output alone, and its gradients alike.
    const JointSearchSettings settings{.ways = options_.ways,
                                       .rounds = options_.rounds,
                                       .reductions = false,
                                       .free_backward = options_.free_backward};
    JointSearch search(context, settings);
    if (auto plan = search.find("optcnn", starts, std::nullopt, budget, rng)) return *plan;
    starts[0].method = "optcnn";
    return starts[0];
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PARTITION_METHOD(
    optcnn, OptCnn, .family = "joint",
    .summary = "Output dimensions on all levels at once: computing, synchronising, moving.",
    .reference = "Jia et al., ICML 2018", .randomized = true)
}  // namespace emplace
