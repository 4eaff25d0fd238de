#include "report/model_map.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/problem_request.h"

namespace emplace {
namespace {

bool within(const MapBox& inner, const MapBox& outer) {
  constexpr double kSlack = 1e-9;
  return inner.x >= outer.x - kSlack && inner.y >= outer.y - kSlack &&
         inner.x + inner.width <= outer.x + outer.width + kSlack &&
         inner.y + inner.height <= outer.y + outer.height + kSlack;
}

bool overlap(const MapBox& a, const MapBox& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

TEST(ModelMap, has_every_op_once_and_boxes_in_their_parents_side_by_side) {
  for (const char* model : {"zoo:resnet-50:batch=2", "zoo:bert-base:layers=2,batch=2"}) {
    const auto problem = load_problem({.model = model, .cluster = "2xp100"});
    const Graph& graph = problem->graph();
    const std::vector<MapBox> boxes = map_of_model(graph, infer_modules(graph));
    std::vector<int> seen(graph.num_ops(), 0);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const MapBox& box = boxes[i];
      for (const OpId op : box.ops) ++seen[op];
      ASSERT_LT(box.parent, static_cast<int>(i)) << "parents come first";
      if (box.parent >= 0) {
        EXPECT_TRUE(within(box, boxes[static_cast<std::size_t>(box.parent)])) << box.path;
      }
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_FALSE(boxes[j].parent == box.parent && overlap(box, boxes[j])) << box.path;
      }
      if (box.ops.empty()) continue;
      const double rows = std::ceil(static_cast<double>(box.ops.size()) / box.columns);
      EXPECT_LE(box.ops_x + box.columns, box.x + box.width + 1e-9) << box.path;
      EXPECT_LE(box.ops_y + rows, box.y + box.height + 1e-9) << box.path;
    }
    EXPECT_THAT(seen, testing::Each(1));
    EXPECT_GT(boxes.size(), 10U);
  }
}

}  // namespace
}  // namespace emplace
