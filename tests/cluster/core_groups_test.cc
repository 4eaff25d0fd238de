#include "cluster/core_groups.h"

#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Groups = std::vector<std::vector<int>>;

TEST(CoreGroups, are_written_as_how_many_of_how_many) {
  EXPECT_THAT(parse_core_groups("4x3"), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(parse_core_groups("2x4+1x8"), ElementsAre(4, 4, 8));
  EXPECT_THAT(parse_core_groups("8"), ElementsAre(8));
  EXPECT_THAT(parse_core_groups("8+2X1"), ElementsAre(8, 1, 1));
}

TEST(CoreGroups, say_what_was_expected_of_anything_else) {
  for (const char* text : {"", "x", "4x", "x3", "4x3+", "+4x3", "0x3", "3x0", "-1x2", "4x3x2",
                           "4y3", "4 x 3", "1x5000", "2x4 "}) {
    EXPECT_THAT(error_text([&] { parse_core_groups(text); }),
                AllOf(HasSubstr("groups of cores"), HasSubstr("4x3")))
        << text;
  }
  EXPECT_THAT(error_text([] { parse_core_groups("2000x1"); }), HasSubstr("at most 1024"));
}

TEST(CoreGroups, take_one_hardware_thread_of_each_core_while_there_are_cores) {
  const LocalMachine machine = synthetic_machine("core:4 pu:2");
  EXPECT_EQ(divide_cores(machine, {2, 2}), (Groups{{0, 2}, {4, 6}}));
}

TEST(CoreGroups, take_both_threads_of_a_core_when_cores_are_too_few) {
  const LocalMachine machine = synthetic_machine("core:4 pu:2");
  EXPECT_EQ(divide_cores(machine, {4, 4}), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST(CoreGroups, use_the_numbers_of_the_operating_system) {
  // As Linux numbers them: first one thread of every core, then the others.
  const LocalMachine machine = synthetic_machine("core:4 pu:2(indexes=0,4,1,5,2,6,3,7)");
  EXPECT_EQ(divide_cores(machine, {2, 2}), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(divide_cores(machine, {4, 4}), (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
}

TEST(CoreGroups, stay_on_one_node_of_memory_where_one_has_room) {
  const LocalMachine machine = synthetic_machine("numa:2 core:4 pu:1");
  EXPECT_EQ(divide_cores(machine, {3, 3}), (Groups{{0, 1, 2}, {4, 5, 6}}));
  EXPECT_EQ(divide_cores(machine, {1, 4}), (Groups{{4}, {0, 1, 2, 3}}));
  // Six do not fit on one.
  EXPECT_EQ(divide_cores(machine, {6}), (Groups{{0, 1, 2, 3, 4, 5}}));
}

TEST(CoreGroups, stay_on_one_cache_where_one_has_room) {
  const LocalMachine machine = synthetic_machine("numa:2 l3:2 core:4 pu:1");
  EXPECT_EQ(divide_cores(machine, {3, 3, 3, 3}),
            (Groups{{0, 1, 2}, {4, 5, 6}, {8, 9, 10}, {12, 13, 14}}));
  // Two caches of one node for six, and the other node for three.
  EXPECT_EQ(divide_cores(machine, {3, 6}), (Groups{{8, 9, 10}, {0, 1, 2, 3, 4, 5}}));
}

TEST(CoreGroups, spread_over_the_machine) {
  const LocalMachine machine = synthetic_machine("numa:2 core:8 pu:1");
  EXPECT_EQ(divide_cores(machine, {2, 2}), (Groups{{0, 1}, {8, 9}}));
}

TEST(CoreGroups, refuse_more_than_there_is) {
  const LocalMachine machine = synthetic_machine("core:4 pu:2");
  EXPECT_THAT(error_text([&] {
                divide_cores(machine, {3, 3, 3});
              }),
              AllOf(HasSubstr("9 cores"), HasSubstr("has 8")));
  EXPECT_THAT(error_text([&] { divide_cores(machine, {9}, true); }),
              AllOf(HasSubstr("9 cores"), HasSubstr("has 8")));
}

TEST(CoreGroups, share_cores_where_they_may) {
  const LocalMachine machine = synthetic_machine("core:2 pu:1");
  EXPECT_EQ(divide_cores(machine, {1, 2, 1}, true), (Groups{{0}, {0, 1}, {1}}));
  EXPECT_EQ(divide_cores(machine, {2, 2}, true), (Groups{{0, 1}, {0, 1}}));
}

TEST(CoreGroups, never_overlap_and_have_their_sizes) {
  for (const char* topology : {"core:7 pu:2", "numa:2 core:5 pu:2", "numa:3 l3:2 core:3 pu:1",
                               "package:2 numa:2 l3:1 l2:2 core:2 pu:2", "pu:5"}) {
    const LocalMachine machine = synthetic_machine(topology);
    const int threads = machine.num_threads();
    for (int size = 1; size <= threads; ++size) {
      std::vector<int> sizes(static_cast<std::size_t>(threads / size), size);
      if (threads % size > 0) sizes.push_back(threads % size);
      const Groups groups = divide_cores(machine, sizes);
      std::set<int> seen;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ(groups[i].size(), static_cast<std::size_t>(sizes[i])) << topology;
        seen.insert(groups[i].begin(), groups[i].end());
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(threads)) << topology;
    }
  }
  EXPECT_THAT(divide_cores(synthetic_machine("pu:2"), {}), IsEmpty());
}

}  // namespace
}  // namespace emplace
