#include <gtest/gtest.h>

#include "zoo/built_graphs.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

Graph dlrm(const OptionValues& options = {}) {
  return build(dlrm_models(), "dlrm", options);
}

TEST(Dlrm, has_the_parameters_of_the_open_configurations) {
  const auto models = dlrm_models();
  EXPECT_EQ(count_parameters(dlrm()), 540'677'217);
  EXPECT_EQ(model_of(models, "dlrm").parameters, 540'677'217);
  // 187,767,399 rows of 128 and the MLPs 13-512-256-128 and 479-1024-1024-512-256-1.
  EXPECT_EQ(count_parameters(build_forward(models, "dlrm-mlperf")),
            187'767'399LL * 128 + 171'392 + 2'197'505);
}

TEST(Dlrm, interacts_every_pair_once) {
  const Graph graph = dlrm({{"training", "false"}});
  const auto joins = ops_of(graph, "interaction", "Concat");
  ASSERT_EQ(joins.size(), 2U);
  const auto shape = graph.shape(graph.outputs(joins[1])[0]);
  EXPECT_EQ((std::vector<std::int64_t>(shape.begin(), shape.end())),
            (std::vector<std::int64_t>{128, 16 + 27 * 26 / 2}));
}

TEST(Dlrm, adds_up_the_rows_of_a_table_where_an_example_has_several) {
  EXPECT_EQ(ops_of(dlrm({{"training", "false"}}), "table.7", "ReduceSum").size(), 0U);
  const Graph graph = dlrm({{"training", "false"}, {"lookups", "5"}});
  const auto sums = ops_of(graph, "table.7", "ReduceSum");
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(graph.shape(graph.inputs(sums[0])[0])[1], 5);
  EXPECT_EQ(graph.bytes(graph.outputs(sums[0])[0]), 128 * 16 * 4);
}

TEST(Dlrm, has_no_more_rows_than_allowed) {
  const Graph graph = dlrm({{"training", "false"}, {"max_rows", "1000"}});
  const auto rows = [&](const char* name) {
    return graph.shape(graph.outputs(graph.find_op(name).value())[0])[0];
  };
  EXPECT_EQ(rows("table.2.weight"), 1000);
  EXPECT_EQ(rows("table.1.weight"), 583);
}

TEST(Dlrm, trains_every_table_and_layer) {
  const Graph graph = dlrm();
  std::size_t parameters = 0;
  std::size_t updates = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    parameters += graph.role(op) == OpRole::kParameter ? 1 : 0;
    updates += graph.phase(op) == Phase::kUpdate ? 1 : 0;
  }
  EXPECT_EQ(parameters, 26U + 2 * 7);
  EXPECT_EQ(updates, parameters);
}

TEST(Dlrm, takes_the_element_type_that_is_asked_for) {
  expect_half_precision(dlrm({{"dtype", "float16"}}));
}

TEST(Dlrm, says_what_an_option_may_be) {
  const std::string error = error_of(dlrm_models(), "dlrm", {{"data", "movies"}});
  EXPECT_NE(error.find("kaggle"), std::string::npos) << error;
}

}  // namespace
}  // namespace emplace::zoo
