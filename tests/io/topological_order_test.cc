#include "io/topological_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace emplace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string name_of(std::uint32_t node) {
  return "n" + std::to_string(node);
}

TEST(TopologicalOrder, takes_the_lowest_of_the_nodes_that_could_come_next) {
  EXPECT_THAT(topological_order(5, {{4, 0}, {3, 1}, {0, 1}}, name_of), ElementsAre(2, 3, 4, 0, 1));
  EXPECT_THAT(topological_order(3, {}, name_of), ElementsAre(0, 1, 2));
}

TEST(TopologicalOrder, repeated_edges_do_no_harm) {
  EXPECT_THAT(topological_order(2, {{1, 0}, {1, 0}}, name_of), ElementsAre(1, 0));
}

// 0 -> 1 -> 2 -> 3 -> 1, 3 -> 4: only 1, 2 and 3 are on the cycle.
TEST(TopologicalOrder, names_the_nodes_of_a_cycle_and_no_others) {
  try {
    topological_order(5, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}}, name_of);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_THAT(message, HasSubstr("n1 -> n2"));
    EXPECT_THAT(message, HasSubstr("n2 -> n3"));
    EXPECT_THAT(message, HasSubstr("n3 -> n1"));
    EXPECT_THAT(message, testing::Not(HasSubstr("n0")));
    EXPECT_THAT(message, testing::Not(HasSubstr("n4")));
  }
}

TEST(TopologicalOrder, a_long_cycle_is_cut_short) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ring;
  for (std::uint32_t node = 0; node < 1000; ++node) ring.emplace_back(node, (node + 1) % 1000);
  try {
    topological_order(1000, ring, name_of);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("..."));
    EXPECT_LT(std::string(error.what()).size(), 200U);
  }
}

}  // namespace
}  // namespace emplace
