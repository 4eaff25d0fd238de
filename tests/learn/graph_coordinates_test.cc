#include "learn/encoders/graph_coordinates.h"

#include <gtest/gtest.h>

#include "learn/units/groupings.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

// Two chains whose ops exchange much, with a small transfer between them.
UnitGraph two_chains(const Problem& problem) {
  return group_by_colocation(problem);
}

std::shared_ptr<const Problem> problem_of(int length) {
  TimedGraph graph;
  TensorId last = graph.op("first", 1000, {}, 100'000'000);
  for (int i = 1; i < 2 * length; ++i) {
    last = graph.op("op" + std::to_string(i), 1000, {last}, i == length - 1 ? 1 : 100'000'000);
  }
  return compile_timed(graph.build(), gpu_cluster(2));
}

TEST(GraphCoordinates, of_two_halves_tell_them_apart) {
  const auto problem = problem_of(6);
  Rng rng(1);
  const torch::Tensor place = graph_coordinates(two_chains(*problem), 3, rng);
  ASSERT_EQ(place.sizes(), (std::vector<std::int64_t>{12, 3}));
  const torch::Tensor first = place.select(1, 0);
  const float side = first[0].item<float>();
  EXPECT_NEAR(std::abs(side), 1, 0.05);
  for (std::int64_t unit = 0; unit < 12; ++unit) {
    EXPECT_NEAR(first[unit].item<float>(), unit < 6 ? side : -side, 0.05) << unit;
  }
}

TEST(GraphCoordinates, have_a_mean_square_of_one_and_zeros_for_what_is_not_there) {
  const auto problem = problem_of(2);
  Rng rng(1);
  const torch::Tensor place = graph_coordinates(two_chains(*problem), 8, rng);
  ASSERT_EQ(place.sizes(), (std::vector<std::int64_t>{4, 8}));
  const torch::Tensor squares = place.square().mean(0);
  EXPECT_TRUE(torch::allclose(squares.slice(0, 0, 3), torch::ones({3}), 1e-4, 1e-4)) << squares;
  EXPECT_EQ(squares.slice(0, 3).sum().item<float>(), 0);
}

}  // namespace
}  // namespace emplace::learn
