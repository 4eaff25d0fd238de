#include "learn/general/rounding.h"

#include <gtest/gtest.h>

#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

// Two modules of three ops each, one after the other; the last op of the first may only be on gpu0.
std::shared_ptr<const Problem> two_modules(const std::vector<std::string>& last_allowed = {}) {
  TimedGraph graph;
  std::vector<TensorId> inputs;
  for (int i = 0; i < 6; ++i) {
    inputs = {graph.add({.name = "op" + std::to_string(i),
                         .type = "compute",
                         .inputs = inputs,
                         .module = i < 3 ? "first" : "second",
                         .devices = i == 2 ? last_allowed : std::vector<std::string>{}},
                        10, 100)};
  }
  return compile_timed(graph.build(), gpu_cluster(2, 1'000'000));
}

TEST(Rounding, puts_every_module_where_most_of_it_is) {
  const auto problem = two_modules();
  const std::vector<Placement> rounded = Rounding(*problem)({0, 1, 0, 1, 1, 0});
  ASSERT_EQ(rounded.size(), 1U);
  EXPECT_EQ(rounded[0], (Placement{0, 0, 0, 1, 1, 1}));
}

TEST(Rounding, leaves_ops_where_they_must_be) {
  const auto problem = two_modules({"gpu0"});
  const std::vector<Placement> rounded = Rounding(*problem)({1, 1, 0, 1, 0, 1});
  ASSERT_EQ(rounded.size(), 1U);
  EXPECT_EQ(rounded[0], (Placement{1, 1, 0, 1, 1, 1}));
}

TEST(Rounding, has_nothing_to_say_of_what_is_round) {
  EXPECT_TRUE(Rounding(*two_modules())({0, 0, 0, 1, 1, 1}).empty());
}

}  // namespace
}  // namespace emplace::learn
