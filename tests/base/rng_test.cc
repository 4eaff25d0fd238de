#include "base/rng.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace emplace {
namespace {

std::vector<std::uint64_t> first_of(Rng rng, int count) {
  std::vector<std::uint64_t> result;
  for (int i = 0; i < count; ++i) result.push_back(rng.next());
  return result;
}

TEST(Rng, repeats_itself_for_one_seed_and_differs_for_another) {
  EXPECT_EQ(first_of(Rng(1), 50), first_of(Rng(1), 50));
  EXPECT_NE(first_of(Rng(1), 50), first_of(Rng(2), 50));
}

// xoshiro256** seeded by splitmix64, from the definitions of both; every platform must agree.
TEST(Rng, gives_the_published_sequence) {
  std::array<std::uint64_t, 4> state{};
  std::uint64_t seed = 12345;
  for (std::uint64_t& word : state) {
    seed += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    word = z ^ (z >> 31);
  }
  EXPECT_EQ(state[0], 0x22118258a9d111a0ULL);  // splitmix64's own first value for this seed
  const auto rotl = [](std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
  Rng rng(12345);
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t expected = rotl(state[1] * 5, 7) * 9;
    const std::uint64_t t = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotl(state[3], 45);
    EXPECT_EQ(rng.next(), expected) << i;
  }
}

TEST(Rng, reaches_every_value_below_a_bound_about_equally) {
  Rng rng(3);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 70'000; ++i) ++counts.at(rng.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.below(1), 0U);
}

TEST(Rng, draws_reals_from_zero_up_to_but_not_one) {
  Rng rng(4);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = rng.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
  EXPECT_FALSE(rng.chance(0.0));
  EXPECT_TRUE(rng.chance(1.0));
}

TEST(Rng, shuffles_into_every_order) {
  Rng rng(5);
  std::set<std::vector<int>> seen;
  for (int i = 0; i < 1000; ++i) {
    std::vector<int> items{1, 2, 3, 4};
    rng.shuffle(items);
    seen.insert(items);
    std::sort(items.begin(), items.end());
    ASSERT_EQ(items, (std::vector<int>{1, 2, 3, 4}));
  }
  EXPECT_EQ(seen.size(), 24U);
}

TEST(Rng, picks_every_item) {
  Rng rng(6);
  const std::vector<int> items{10, 20, 30};
  std::set<int> seen;
  for (int i = 0; i < 200; ++i) seen.insert(rng.pick(std::span<const int>(items)));
  EXPECT_EQ(seen, (std::set<int>{10, 20, 30}));
}

TEST(Rng, splits_by_task_number_whatever_the_order) {
  const Rng rng(7);
  const auto first = first_of(rng.split(1), 20);
  const auto second = first_of(rng.split(2), 20);
  EXPECT_EQ(first_of(rng.split(2), 20), second);
  EXPECT_EQ(first_of(rng.split(1), 20), first);
  EXPECT_NE(first, second);
  EXPECT_NE(first_of(rng.split(0), 20), first_of(rng, 20));
  EXPECT_NE(first_of(Rng(8).split(1), 20), first);
}

}  // namespace
}  // namespace emplace
