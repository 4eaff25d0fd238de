#include "base/decimal.h"

#include <limits>

#include <gtest/gtest.h>

namespace emplace {
namespace {

TEST(Decimal, reads_numbers_as_json_writes_them) {
  EXPECT_EQ(Decimal::parse("3"), (Decimal{3, 0}));
  EXPECT_EQ(Decimal::parse("41.2"), (Decimal{412, -1}));
  EXPECT_EQ(Decimal::parse("-0.5"), (Decimal{-5, -1}));
  EXPECT_EQ(Decimal::parse("1.5e-3"), (Decimal{15, -4}));
  EXPECT_EQ(Decimal::parse("2E+6"), (Decimal{2, 6}));
  EXPECT_EQ(Decimal::parse("+.25"), (Decimal{25, -2}));
  EXPECT_EQ(Decimal::parse("0.000"), (Decimal{0, 0}));
  EXPECT_EQ(Decimal::parse("-0"), (Decimal{0, 0}));
}

TEST(Decimal, keeps_trailing_zeros_in_the_exponent) {
  EXPECT_EQ(Decimal::parse("1200"), (Decimal{12, 2}));
  EXPECT_EQ(Decimal::parse("1.500"), (Decimal{15, -1}));
  EXPECT_EQ(Decimal::parse("1000000000000000000000000"), (Decimal{1, 24}));
}

TEST(Decimal, takes_eighteen_significant_digits_and_no_more) {
  EXPECT_EQ(Decimal::parse("123456789012345678"), (Decimal{123456789012345678, 0}));
  EXPECT_EQ(Decimal::parse("0.000123456789012345678"), (Decimal{123456789012345678, -21}));
  EXPECT_EQ(Decimal::parse("1234567890123456789"), std::nullopt);
  EXPECT_EQ(Decimal::parse("100000000000000000001"), std::nullopt);
}

TEST(Decimal, refuses_what_is_not_a_number) {
  for (const char* text : {"", "-", ".", "e5", "1e", "1e+", "1.2.3", "12a", " 1", "1 ", "0x10",
                           "nan", "inf", "--1", "1e5.5", "1,5"}) {
    EXPECT_EQ(Decimal::parse(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(Decimal, writes_what_it_can_read_again) {
  for (const char* text : {"0", "7", "-12", "41.2", "1e-9", "123456789012345678", "5e300"}) {
    const Decimal value = Decimal::parse(text).value();
    EXPECT_EQ(Decimal::parse(value.to_string()), value) << text;
  }
}

TEST(Decimal, comes_near_a_double) {
  EXPECT_EQ(round_half_up(Decimal::from_double(1.25, 3), 1000), 1250);
  EXPECT_EQ(round_half_up(Decimal::from_double(0.1, 6), 1'000'000), 100'000);
  EXPECT_TRUE(Decimal::from_double(-1.5, 1).negative());
  EXPECT_DOUBLE_EQ((Decimal{412, -1}).to_double(), 41.2);
}

TEST(RoundHalfUp, is_exact_where_binary_floating_point_is_not) {
  EXPECT_EQ(round_half_up({412, -1}, 1000), 41'200);
  EXPECT_EQ(round_half_up({1'0005, -4}, 1000), 1001);  // 1000.5 goes up
  EXPECT_EQ(round_half_up({1'000499999999999, -15}, 1000), 1000);
  EXPECT_EQ(round_half_up({5, -1}, {1, 0}, 1), 1);
  EXPECT_EQ(round_half_up({49, -2}, {1, 0}, 1), 0);
  EXPECT_EQ(round_half_up({2675, -3}, {1, 0}, 100), 268);  // 2.675 is below itself in binary
  EXPECT_EQ(round_half_up({3, 0}, {15, -1}, 1000), 4500);
  EXPECT_EQ(round_half_up({333, -3}, {15, -1}, 1), 0);  // 0.4995
  EXPECT_EQ(round_half_up({1, -1}, {5, 0}, 1), 1);      // 0.5, from two factors
}

TEST(RoundHalfUp, copes_with_very_small_and_very_large_factors) {
  EXPECT_EQ(round_half_up({1, -300}, 1000), 0);
  EXPECT_EQ(round_half_up({0, 0}, {1, 300}, 1000), 0);
  EXPECT_EQ(round_half_up({1, 300}, {1, -300}, 7), 7);
  EXPECT_EQ(round_half_up({999999999999999999, 0}, {999999999999999999, -18}, 1),
            999999999999999998);
  EXPECT_EQ(round_half_up({922337203685477580, 1}, {1, 0}, 1), 9223372036854775800);
}

TEST(RoundHalfUp, says_when_the_result_does_not_fit) {
  EXPECT_EQ(round_half_up({1, 19}, 1), std::nullopt);
  EXPECT_EQ(round_half_up({1, 300}, 1), std::nullopt);
  EXPECT_EQ(round_half_up({922337203685477581, 1}, 1), std::nullopt);
  EXPECT_EQ(round_half_up({999999999999999999, 0}, {999999999999999999, 0}, 1000), std::nullopt);
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(round_half_up({1, 0}, kMax), kMax);
}

}  // namespace
}  // namespace emplace
