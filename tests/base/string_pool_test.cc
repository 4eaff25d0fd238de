#include "base/string_pool.h"

#include <gtest/gtest.h>

namespace emplace {
namespace {

TEST(StringPool, numbers_strings_in_order_of_first_use) {
  StringPool pool{StringPool::WithoutEmpty{}};
  EXPECT_EQ(pool.size(), 0U);
  EXPECT_EQ(pool.intern("b"), 0U);
  EXPECT_EQ(pool.intern("a"), 1U);
  EXPECT_EQ(pool.intern("b"), 0U);
  EXPECT_EQ(pool.size(), 2U);
  EXPECT_EQ(pool.get(0), "b");
  EXPECT_EQ(pool.get(1), "a");
}

TEST(StringPool, holds_the_empty_string_unless_made_without) {
  EXPECT_EQ(StringPool().find(""), kEmptyString);
  EXPECT_EQ(StringPool().get(kEmptyString), "");
  StringPool pool{StringPool::WithoutEmpty{}};
  EXPECT_EQ(pool.find(""), std::nullopt);
  EXPECT_EQ(pool.intern("x"), 0U);
  EXPECT_EQ(pool.intern(""), 1U);
  EXPECT_EQ(pool.find(""), 1U);
}

TEST(StringPool, finds_only_what_was_added) {
  StringPool pool;
  pool.intern("abc");
  EXPECT_TRUE(pool.find("abc").has_value());
  EXPECT_FALSE(pool.find("ab").has_value());
  EXPECT_FALSE(pool.find("abcd").has_value());
}

TEST(StringPool, tells_apart_strings_that_join_alike_and_keeps_zero_bytes) {
  StringPool pool;
  const StringId first = pool.intern("ab");
  const StringId second = pool.intern("c");
  const StringId third = pool.intern("a");
  const StringId fourth = pool.intern("bc");
  const StringId with_zero = pool.intern(std::string_view("a\0b", 3));
  EXPECT_EQ(pool.get(first), "ab");
  EXPECT_EQ(pool.get(second), "c");
  EXPECT_EQ(pool.get(third), "a");
  EXPECT_EQ(pool.get(fourth), "bc");
  EXPECT_EQ(pool.get(with_zero).size(), 3U);
}

TEST(StringPool, keeps_its_numbers_while_it_grows) {
  StringPool pool{StringPool::WithoutEmpty{}};
  for (StringId i = 0; i < 20'000; ++i) ASSERT_EQ(pool.intern("name" + std::to_string(i)), i);
  for (StringId i = 0; i < 20'000; ++i) {
    ASSERT_EQ(pool.find("name" + std::to_string(i)), i);
    ASSERT_EQ(pool.get(i), "name" + std::to_string(i));
  }
  EXPECT_EQ(pool.size(), 20'000U);
}

TEST(StringPool, stays_whole_when_copied_and_moved) {
  StringPool pool;
  const StringId id = pool.intern("kept");
  const StringPool copy = pool;
  const StringPool moved = std::move(pool);
  EXPECT_EQ(copy.find("kept"), id);
  EXPECT_EQ(moved.get(id), "kept");
}

}  // namespace
}  // namespace emplace
