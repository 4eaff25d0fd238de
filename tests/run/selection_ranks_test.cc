#include "run/selection_ranks.h"

#include <array>

#include <gtest/gtest.h>

namespace emplace {
namespace {

constexpr std::array<std::int64_t, 2> kCosts{3, 4};
constexpr std::array<std::int64_t, 2> kUsages{1, 2};
constexpr std::array<std::int64_t, 4> kTable{0, 5, 6, 0};

struct Shape {
  SelectionProblem::Interval alive{0, 2};
  std::int32_t from = 0;
  std::uint64_t seed = 1;
};

std::uint64_t fingerprint_of(const Shape& shape) {
  SelectionProblem problem;
  for (int i = 0; i < 3; ++i) problem.add_node(kCosts, kUsages, shape.alive);
  problem.add_edge(shape.from, 2, kTable);
  return fingerprint(problem, shape.seed);
}

// The bound of a rank that solves another problem would be believed.
TEST(SelectionFingerprint, DiffersWhereAnythingDoes) {
  const std::uint64_t first = fingerprint_of({});
  EXPECT_EQ(fingerprint_of({}), first);
  EXPECT_NE(fingerprint_of({.alive = {1, 2}}), first);
  EXPECT_NE(fingerprint_of({.from = 1}), first);
  EXPECT_NE(fingerprint_of({.seed = 2}), first);
}

// The same numbers in the same order, but for where one node's end and the next one's begin.
TEST(SelectionFingerprint, DiffersWithWhatANodeMayChoose) {
  const auto of = [](std::size_t choices) {
    constexpr std::array<std::int64_t, 3> kAll{1, 1, 1};
    SelectionProblem problem;
    problem.add_node(std::span(kAll).first(choices));
    problem.add_node(std::span(kAll).first(3 - choices));
    return fingerprint(problem, 1);
  };
  EXPECT_NE(of(1), of(2));
}

}  // namespace
}  // namespace emplace
