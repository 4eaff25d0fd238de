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

TEST(FaultOfName, utf8_without_control_characters_is_fine) {
  EXPECT_EQ(fault_of_name("encoder.layer.0/MatMul"), "");
  EXPECT_EQ(fault_of_name("größe \u4e2d \U0001F600"), "");
  EXPECT_EQ(fault_of_name(""), "");
}

TEST(FaultOfName, says_what_is_wrong) {
  for (const char* text : {"\xF6", "a\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\x80"}) {
    EXPECT_EQ(fault_of_name(text), "is not UTF-8") << printable(text);
    EXPECT_FALSE(is_utf8(text));
  }
  for (const char* text : {"a\x1b[31m", "a\nb", "\x7f", "\xC2\x9B"}) {
    EXPECT_EQ(fault_of_name(text), "has a control character") << printable(text);
    EXPECT_TRUE(is_utf8(text));
  }
}

TEST(Printable, keeps_lines_and_shows_the_rest) {
  EXPECT_EQ(printable("a\n\tö"), "a\n\tö");
  EXPECT_EQ(printable("\x1b[0m\r\xF6"), "\\x1b[0m\\x0d\\xf6");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b");
}

}  // namespace
}  // namespace emplace
