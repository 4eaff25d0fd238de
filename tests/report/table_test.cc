#include "report/table.h"

#include <gtest/gtest.h>

#include "report/prose.h"
#include "report/text_style.h"

namespace emplace {
namespace {

TEST(Table, columns_are_as_wide_as_they_need_and_numbers_to_the_right) {
  Table table({{"placer"}, {"step", Table::Align::kRight}, {"note"}});
  table.add({"heft", "9.5 ms", "x"});
  table.add({"round_robin", "120.0 ms", ""});
  EXPECT_EQ(table.to_string(),
            " placer           step  note\n"
            " ───────────────────────────\n"
            " heft           9.5 ms  x\n"
            " round_robin  120.0 ms\n");
}

TEST(Table, counts_characters_rather_than_bytes) {
  Table table({{"bar"}, {"end"}});
  table.add({"██", "a"});
  table.add({"abcd", "b"});
  EXPECT_EQ(table.to_string(),
            " bar   end\n"
            " ─────────\n"
            " ██    a\n"
            " abcd  b\n");
}

TEST(Bar, is_a_share_of_its_width_in_eighths) {
  EXPECT_EQ(bar(0, 4), "");
  EXPECT_EQ(bar(0.5, 4), "██");
  EXPECT_EQ(bar(1, 4), "████");
  EXPECT_EQ(bar(1.7, 4), "████") << "no more than all of it";
  EXPECT_EQ(bar(-1, 4), "");
  EXPECT_EQ(bar(1.0 / 32, 4), "▏");
  EXPECT_EQ(bar(15.0 / 32, 4), "█▉");
}

TEST(JoinWords, is_an_english_list) {
  EXPECT_EQ(join_words({}), "");
  EXPECT_EQ(join_words({"a"}), "a");
  EXPECT_EQ(join_words({"a", "b"}), "a and b");
  EXPECT_EQ(join_words({"a", "b", "c"}), "a, b and c");
}

TEST(Wrapped, indents_and_breaks_long_lines_between_words) {
  EXPECT_EQ(wrapped("short"), " short\n");
  std::string text;
  for (int i = 0; i < 40; ++i) text += "wordlike ";
  const std::string lines = wrapped(text);
  std::size_t begin = 0;
  int count = 0;
  while (begin < lines.size()) {
    const std::size_t end = lines.find('\n', begin);
    EXPECT_LE(end - begin, 112U);
    EXPECT_EQ(lines[begin], ' ');
    begin = end + 1;
    ++count;
  }
  EXPECT_EQ(count, 4);
}

TEST(Wrapped, keeps_a_number_with_its_unit) {
  const std::string text = wrapped(std::string(104, 'x') + " takes 12 ms");
  EXPECT_NE(text.find("12 ms"), std::string::npos) << text;
}

TEST(Table, leaves_out_what_it_can_spare_where_it_is_too_wide) {
  Table table(
      {{"name"}, {"", Table::Align::kLeft, /*spare=*/true}, {"time", Table::Align::kRight}});
  table.add({"a", std::string(40, '#'), "1 ms"});
  EXPECT_NE(table.to_string().find("##"), std::string::npos);
  set_text_width(40);
  EXPECT_EQ(table.to_string().find("##"), std::string::npos);
  EXPECT_NE(table.to_string().find("1 ms"), std::string::npos);
  set_text_width(kUsualWidth);
}

TEST(Prose, lines_are_no_longer_than_texts_are_wide) {
  const std::string sentence = "nothing in this sentence of many words keeps it from being broken";
  EXPECT_EQ(wrapped(sentence), " " + sentence + "\n");
  set_text_width(40);
  for (const std::string& text : {wrapped(sentence), fitted(sentence + "\n")}) {
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = text.find('\n', begin);
      EXPECT_LE(end - begin, 40U) << text;
    }
  }
  const std::string row = " a    " + std::string(60, '#') + "\n";
  EXPECT_EQ(fitted(row), row);
  set_text_width(kUsualWidth);
}

TEST(Table, is_ascii_where_nothing_else_can_be_shown) {
  set_ascii_only(true);
  Table table({{"bar"}, {"end"}});
  table.add({bar(0.6, 4), "a"});
  const std::string text = table.to_string();
  set_ascii_only(false);
  EXPECT_EQ(text,
            " bar  end\n"
            " --------\n"
            " ##   a\n");
}

}  // namespace
}  // namespace emplace
