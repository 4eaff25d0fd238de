#include "tensor/methods/methods.h"

#include <string>

#include "base/error.h"
#include "base/options.h"

namespace emplace {
namespace {

constexpr PartitionMethod kMethods[] = {
    {"search", "Cuts on all levels at once, by time, within the memory; the simulator decides.",
     "emplace", search},
    {"tofu", "Level by level, the cuts that move the fewest bytes.", "Wang et al., EuroSys 2019",
     tofu},
    {"optcnn", "Output dimensions on all levels at once: computing, synchronising, moving.",
     "Jia et al., ICML 2018", optcnn},
    {"data-parallel", "Examples divided, weights everywhere.", "folklore", data_parallel},
    {"all-row", "Every tensor by its first dimension.", "Wang et al., EuroSys 2019 (AllRow-Greedy)",
     all_row},
    {"equal-chop", "Every tensor by one dimension, chosen by dynamic programming.",
     "Wang et al., EuroSys 2019 (EqualChop)", equal_chop},
    {"spartan", "The largest tensor first, each by what then moves least.",
     "Huang et al., USENIX ATC 2015", spartan},
};

}  // namespace

std::span<const PartitionMethod> partition_methods() {
  return kMethods;
}

const PartitionMethod& find_partition_method(std::string_view name) {
  std::vector<std::string> names;
  for (const PartitionMethod& method : kMethods) {
    if (method.name == name) return method;
    names.emplace_back(method.name);
  }
  fail_option("there is no partitioning method '{}'{}; expected one of: {}", name,
              suggestion(name, names), fmt::join(names, ", "));
}

}  // namespace emplace
