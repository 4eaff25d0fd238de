#include "run/partition_ranks.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace emplace {
namespace {

void put_cuts(dist::Writer& writer, const std::vector<Cuts>& cuts) {
  writer.number<std::uint64_t>(cuts.size());
  for (const Cuts& each : cuts) writer.numbers(each);
}

// `dimensions` of the i-th, of which one is cut on a level.
template <class Dimensions>
std::vector<Cuts> take_cuts(dist::Reader& reader, std::size_t expected, std::size_t levels,
                            const Dimensions& dimensions) {
  const std::size_t count = reader.count(sizeof(std::uint64_t));
  if (count != expected) fail_input("a plan cuts {} things; expected {}", count, expected);
  std::vector<Cuts> cuts;
  cuts.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    cuts.push_back(reader.numbers<std::int8_t>());
    if (cuts.back().size() != levels) {
      fail_input("a plan has {} levels; expected {}", cuts.back().size(), levels);
    }
    for (const std::int8_t cut : cuts.back()) {
      if (cut < kUncut || cut >= static_cast<std::int64_t>(dimensions(i))) {
        fail_input("a plan cuts dimension {} of {}", cut, dimensions(i));
      }
    }
  }
  return cuts;
}

}  // namespace

std::string plan_bytes(const Plan& plan) {
  dist::Writer writer;
  writer.text(plan.method);
  put_cuts(writer, plan.tensors);
  put_cuts(writer, plan.ops);
  writer.numbers(plan.held);
  const AddedCost cost = plan.added_cost.value_or(AddedCost{.cost = -1});
  writer.number(cost.cost).number(cost.lower_bound).number<std::uint8_t>(cost.proven ? 1 : 0);
  return writer.take();
}

Plan take_plan(dist::Reader& reader, const PartitionInput& input, const Workers& workers) {
  Plan plan{.method = reader.text(), .workers = workers, .tensors = {}, .ops = {}, .held = {}};
  plan.tensors = take_cuts(
      reader, input.graph.num_tensors(), workers.levels(),
      [&](std::size_t tensor) { return input.whole(static_cast<TensorId>(tensor)).size(); });
  plan.ops = take_cuts(reader, input.graph.num_ops(), workers.levels(), [&](std::size_t op) {
    const auto& description = input.descriptions[op];
    return description != nullptr ? variables_of(*description).size() : 0;
  });
  plan.held = reader.numbers<std::uint8_t>();
  const bool flags =
      std::all_of(plan.held.begin(), plan.held.end(), [](auto flag) { return flag < 2; });
  if (!flags || (!plan.held.empty() && plan.held.size() != plan.tensors.size())) {
    fail_input("a plan says of {} tensors whether they are held; expected {}", plan.held.size(),
               plan.tensors.size());
  }
  const auto cost = reader.number<std::int64_t>();
  const auto lower_bound = reader.number<std::int64_t>();
  const bool proven = reader.number<std::uint8_t>() != 0;
  if (cost >= 0) plan.added_cost = {cost, lower_bound, proven};
  reader.end();
  return plan;
}

}  // namespace emplace
