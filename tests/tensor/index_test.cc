#include "tensor/tdl/index.h"

#include <gtest/gtest.h>

namespace emplace::tdl {
namespace {

const Index x = Index::of(0);
const Index k = Index::of(1);

TEST(Index, runs_through_an_interval) {
  const std::vector<Interval> box{{2, 5}, {0, 3}};
  EXPECT_EQ((x * 2 + k - 1).over(box), (Interval{3, 10}));
  EXPECT_EQ((k - x).over(box), (Interval{-4, 1}));
  EXPECT_EQ(Index(7).over(box), (Interval{7, 8}));
}

// Only multiples count: (x - k) / 2 for x in 2..4 and k in 0..2 is 0, 1 or 2.
TEST(Index, a_division_keeps_what_it_divides) {
  EXPECT_EQ(((x - k) / 2).over({{2, 5}, {0, 3}}), (Interval{0, 3}));
  EXPECT_EQ((x / 4).over({{1, 4}}), (Interval{1, 1}));  // none
}

TEST(Index, an_empty_range_leaves_nothing) {
  EXPECT_TRUE((x + k).over({{3, 3}, {0, 2}}).empty());
}

TEST(Index, sums_cancel) {
  EXPECT_TRUE((x + k - x - k).is_constant());
  EXPECT_EQ((x * 3 - x).factor_of(0), 2);
  EXPECT_TRUE((x + k - k).is_variable());
}

// A convolution with three taps: each half needs one element of the other.
TEST(SymbolicInterval, shows_the_halo) {
  const std::vector<std::string> names{"X", "K"};
  const Index tap = x + k - 1;
  EXPECT_EQ(symbolic(tap, {Half::kWhole, Half::kWhole}).text(names), "[-1, X + K - 2)");
  EXPECT_EQ(symbolic(tap, {Half::kLower, Half::kWhole}).text(names), "[-1, X/2 + K - 2)");
  EXPECT_EQ(symbolic(tap, {Half::kUpper, Half::kWhole}).text(names), "[X/2 - 1, X + K - 2)");
}

// Over every extent the symbolic ends are those of the numbers.
TEST(SymbolicInterval, agrees_with_numbers) {
  const Index index = x * 2 - k + 5;
  for (const auto& [extent, taps] : {std::pair<Position, Position>{8, 3}, {10, 1}, {2, 7}}) {
    const SymbolicInterval whole = symbolic(index, {Half::kWhole, Half::kWhole});
    const auto value = [&, e = extent, t = taps](const SymbolicInterval::End& end) {
      return end.extents[0] * static_cast<double>(e) + end.extents[1] * static_cast<double>(t) +
             end.constant;
    };
    const Interval range = index.over({{0, extent}, {0, taps}});
    EXPECT_DOUBLE_EQ(value(whole.begin), static_cast<double>(range.begin));
    EXPECT_DOUBLE_EQ(value(whole.end), static_cast<double>(range.end));
  }
}

}  // namespace
}  // namespace emplace::tdl
