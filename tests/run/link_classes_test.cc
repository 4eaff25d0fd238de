#include "run/link_classes.h"

#include <gtest/gtest.h>

#include "support/shared_core.h"

namespace emplace {
namespace {

std::vector<std::string> texts(const ClusterSpec& spec) {
  std::vector<std::string> result;
  for (const LinkClass& link : link_classes(spec)) {
    result.push_back(fmt::format("{}: {} -> {}", link.rule, link.own.from, link.own.to));
  }
  return result;
}

ClusterSpec gpu_and_cores() {
  ClusterSpec spec = shared_core_spec(4);
  spec.devices[0].kind = "p100";
  return spec;
}

TEST(LinkClasses, a_rule_between_devices_of_one_kind_is_one) {
  EXPECT_EQ(texts(shared_core_spec(3)), (std::vector<std::string>{"0: * -> *"}));
}

TEST(LinkClasses, a_rule_is_told_apart_by_the_kinds_that_it_joins) {
  EXPECT_EQ(texts(gpu_and_cores()),
            (std::vector<std::string>{"0: cpu -> cpu", "0: cpu -> p100", "0: p100 -> cpu"}));
}

TEST(LinkClasses, devices_are_named_where_the_kind_means_others_too) {
  ClusterSpec spec = gpu_and_cores();
  spec.links.push_back(spec.links[0]);
  spec.links[1].from = "cpu1,cpu2";
  spec.links[1].to = "cpu3,p100";
  EXPECT_EQ(texts(spec),
            (std::vector<std::string>{"0: cpu -> cpu", "0: cpu -> p100", "0: p100 -> cpu",
                                      "1: cpu1,cpu2 -> cpu3", "1: cpu1,cpu2 -> p100"}));
}

// What a later rule covers alone is its own; one that joins nothing has no class.
TEST(LinkClasses, the_last_rule_of_a_pair_counts) {
  ClusterSpec spec = gpu_and_cores();
  spec.links.push_back(spec.links[0]);
  EXPECT_EQ(texts(spec),
            (std::vector<std::string>{"1: cpu -> cpu", "1: cpu -> p100", "1: p100 -> cpu"}));
  EXPECT_EQ(rule_of_link(spec, 0, 1), 1U);
  spec.links.clear();
  EXPECT_EQ(rule_of_link(spec, 0, 1), 0U);
  EXPECT_TRUE(link_classes(spec).empty());
}

}  // namespace
}  // namespace emplace
