#include "learn/units/orders.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "learn/units/groupings.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

std::vector<std::size_t> places(const std::vector<UnitId>& order) {
  std::vector<std::size_t> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) result[order[i]] = i;
  return result;
}

TEST(Orders, are_permutations_on_every_graph) {
  Rng rng(1);
  for (int trial = 0; trial < 100; ++trial) {
    const auto problem = random_problem(rng);
    const UnitGraph units = group_by_colocation(*problem);
    std::vector<UnitId> local = locality_order(units);
    EXPECT_EQ(local, locality_order(units));
    std::sort(local.begin(), local.end());
    EXPECT_EQ(local, topological_order(units));
  }
}

TEST(Orders, keep_together_what_exchanges_much) {
  // Two chains, op by op in turn, that meet in the end.
  TimedGraph graph;
  TensorId a = graph.op("a0", 1, {});
  TensorId b = graph.op("b0", 1, {});
  for (int i = 1; i < 4; ++i) {
    a = graph.op(fmt::format("a{}", i), 1, {a}, 1000);
    b = graph.op(fmt::format("b{}", i), 1, {b}, 1000);
  }
  graph.op("end", 1, {a, b});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const std::vector<std::size_t> place = places(locality_order(group_by_colocation(*problem)));
  std::vector<std::size_t> first{place[0], place[2], place[4]};
  std::vector<std::size_t> second{place[1], place[3], place[5]};
  for (auto* chain : {&first, &second}) {
    const auto [low, high] = std::minmax_element(chain->begin(), chain->end());
    EXPECT_LE(*high - *low, 3U);
  }
}

TEST(Orders, put_backward_ops_beside_what_they_read) {
  // Activations are large, what goes from layer to layer is small.
  TimedGraph graph;
  std::vector<TensorId> kept;
  TensorId x = graph.op("in", 1, {}, 10);
  for (int i = 0; i < 3; ++i) {
    const TensorId wide = graph.op(fmt::format("wide{}", i), 1, {x}, 1'000'000);
    kept.push_back(wide);
    x = graph.op(fmt::format("out{}", i), 1, {wide}, 10);
  }
  for (int i = 2; i >= 0; --i) {
    x = graph.backward(fmt::format("back{}", i), 1, {x, kept[static_cast<std::size_t>(i)]});
  }
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const std::vector<std::size_t> place = places(locality_order(group_by_colocation(*problem)));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto forward = static_cast<int>(place[1 + 2 * i]);
    const auto backward = static_cast<int>(place[9 - i]);
    EXPECT_LE(std::abs(forward - backward), 3) << i;
  }
}

}  // namespace
}  // namespace emplace::learn
