#include "report/placement_tree.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

#include "graph/graph_builder.h"

#include "report/text_style.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;

// Names are cut between characters, and columns stay where they are.
TEST(PlacementTree, cuts_long_names_between_characters) {
  GraphBuilder builder("net");
  std::string long_name;
  for (int i = 0; i < 45; ++i) long_name += "\u0436";
  for (const std::string& module : {std::string("short"), long_name}) {
    for (int i = 0; i < 2; ++i) {
      builder.add({.name = module + "." + std::to_string(i), .type = "op", .module = module},
                  {{.bytes = 0}});
    }
  }
  const Graph graph = std::move(builder).build();
  const std::size_t usual = text_width();
  for (std::size_t width = 40; width < 100; ++width) {
    set_text_width(width);
    const std::string text = to_text(
        placement_tree(graph, {.devices = {"gpu0", "gpu1"}, .device = {0, 1, 1, 0}}, 3), false);
    EXPECT_TRUE(is_utf8(text));
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    const std::size_t column = line.find("where");
    while (std::getline(lines, line)) {
      EXPECT_EQ(display_width(line.substr(0, line.find("gpu"))), column) << text;
    }
  }
  set_text_width(usual);
  EXPECT_EQ(shortened("\u0436\u0436\u0436\u0436\u0436", 4), "\u0436...");
  EXPECT_EQ(shortened("\u0436\u0436", 2), "\u0436\u0436");
}

}  // namespace
}  // namespace emplace
