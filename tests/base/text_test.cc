#include "base/text.h"

#include <gtest/gtest.h>

namespace emplace {
namespace {

TEST(MatchesPattern, a_star_is_any_text_also_none) {
  EXPECT_TRUE(matches_pattern("encoder.*", "encoder."));
  EXPECT_TRUE(matches_pattern("encoder.*", "encoder.0/MatMul"));
  EXPECT_TRUE(matches_pattern("*.weight", ".hidden.weight"));
  EXPECT_TRUE(matches_pattern("a*b*c", "a.b.b.c"));
  EXPECT_TRUE(matches_pattern("**", ""));
  EXPECT_FALSE(matches_pattern("encoder.*", "encoder"));
  EXPECT_FALSE(matches_pattern("a*b", "a.b.c"));
  EXPECT_FALSE(matches_pattern("", "a"));
}

TEST(MatchesPattern, all_other_characters_are_themselves) {
  EXPECT_TRUE(matches_pattern("layers[0].*", "layers[0].MatMul"));
  EXPECT_FALSE(matches_pattern("layers[0].*", "layers0.MatMul"));
  EXPECT_TRUE(matches_pattern("a?", "a?"));
  EXPECT_FALSE(matches_pattern("a?", "ab"));
  EXPECT_TRUE(matches_pattern("a\\b", "a\\b"));
}

TEST(Trim, takes_white_space_off_both_ends) {
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

}  // namespace
}  // namespace emplace
