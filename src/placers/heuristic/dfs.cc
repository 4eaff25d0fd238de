// The DFS partitioner of Mayer, Mayer and Laich, "The TensorFlow partitioning and scheduling
// problem: it's the critical path!" (2017): groups of ops as a depth-first search meets them, each
// on the device of the least traffic * execution time.
//
// The search starts from every group in file order and follows the tensors that a group writes, the
// first reader first. The factors are those of MITE (mite.cc): traffic is epsilon + the lengths of
// the transfers to and from neighbours already placed, infinite without a link; a nanosecond is
// added to the execution time so that it is never 0.
#include "placer/memory.h"
#include "placer/placer.h"

#include "placers/common/choices.h"
#include "placers/common/greedy.h"

namespace emplace {
namespace {

class Dfs final : public Placer {
 public:
  struct Options {
    double epsilon_us = 10;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.real("epsilon_us", &Options::epsilon_us, 0.001, 1e9,
                                        "What traffic counts where nothing is sent.");
  }
  explicit Dfs(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

// Groups that read what the group writes, by output and consumer.
void collect_readers(const Problem& problem, GroupId group, std::vector<GroupId>& readers) {
  const Graph& graph = problem.graph();
  readers.clear();
  for (const OpId op : problem.group_ops(group)) {
    for (const TensorId tensor : graph.outputs(op)) {
      for (const OpId reader : graph.consumers(tensor)) readers.push_back(problem.group_of(reader));
    }
  }
}

// Groups in the order in which the search meets them first.
std::vector<GroupId> depth_first_order(const Problem& problem) {
  std::vector<GroupId> order;
  std::vector<bool> met(problem.num_groups(), false);
  std::vector<GroupId> stack;
  std::vector<GroupId> readers;
  for (GroupId root = 0; root < problem.num_groups(); ++root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const GroupId group = stack.back();
      stack.pop_back();
      if (met[group]) continue;
      met[group] = true;
      order.push_back(group);
      collect_readers(problem, group, readers);
      std::erase_if(readers, [&](GroupId reader) { return met[reader]; });
      stack.insert(stack.end(), readers.rbegin(), readers.rend());
    }
  }
  return order;
}

PlaceResult Dfs::place(PlaceContext& context, const Budget& budget, Rng) {
  const Problem& problem = context.problem();
  const std::vector<GroupId> order = depth_first_order(problem);
  const double epsilon_ns = options_.epsilon_us * 1000;
  const auto score = [&](GroupId group, DeviceId device, Nanoseconds sent) {
    const double execution = static_cast<double>(group_duration(problem, group, device) + 1);
    return (epsilon_ns + static_cast<double>(sent)) * execution;
  };
  return fit_memory(problem, context.evaluator(), budget, [&](MemoryLedger& ledger) {
    const auto device_of_group = place_by_score(problem, order, ledger, score);
    return PlaceResult{.placement = expand_groups(problem, device_of_group)};
  });
}

}  // namespace

EMPLACE_PLACER(dfs, Dfs, .family = "heuristic",
               .summary = "Depth-first, each op where traffic times execution time is least.",
               .reference = "Mayer, Mayer, Laich 2017")

}  // namespace emplace
