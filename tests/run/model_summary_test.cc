#include "run/model_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/batch.h"
#include "support/command.h"
#include "support/error_text.h"
#include "support/fork.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

const ModuleSummary* find(const ModuleSummary& module, const std::string& name) {
  if (module.name == name) return &module;
  for (const ModuleSummary& inner : module.inner) {
    if (const ModuleSummary* found = find(inner, name)) return found;
  }
  return nullptr;
}

TEST(ModelSummary, counts_what_there_is) {
  const ModelSummary summary =
      summarize_model({.model = "zoo:resnet-50:batch=2,optimizer=adam", .cluster = {}});
  const ModelFigures& figures = summary.figures;
  EXPECT_EQ(figures.parameters, 25'557'032);
  EXPECT_EQ(figures.parameter_bytes, 25'557'032 * 4);
  EXPECT_GE(figures.state_bytes, 25'557'032 * 8) << "two moments, and running means";
  EXPECT_TRUE(figures.training);
  EXPECT_NEAR(figures.flops[1] / figures.flops[0], 2, 0.1);
  EXPECT_GT(figures.activation_bytes, 2 * 80'000'000) << "80 MB an image, and more";
  EXPECT_GT(*figures.peak_bytes, figures.activation_bytes + figures.parameter_bytes);
  EXPECT_EQ(summary.work.samples, 2);
  EXPECT_TRUE(summary.ops_without_flops.empty());
  EXPECT_EQ(summary.tensors_without_shape, 0);
}

TEST(ModelSummary, has_the_modules_as_a_tree) {
  const ModuleSummary root =
      summarize_model({.model = "zoo:bert-base:batch=1,sequence=8", .cluster = {}}).modules;
  const ModuleSummary* encoder = find(root, "bert.encoder");
  ASSERT_NE(encoder, nullptr);
  EXPECT_EQ(encoder->parameters, 85'054'464) << "12 layers of 7,087,872";
  const ModuleSummary* layer = find(root, "bert.encoder.layer.3");
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(layer->parameters, 7'087'872);
  std::int64_t ops = 0;
  for (const ModuleSummary& inner : root.inner) ops += inner.ops;
  EXPECT_LE(ops, root.ops);
  EXPECT_GT(root.flops, encoder->flops);
}

TEST(ModelSummary, says_what_is_not_known) {
  const ModelFigures figures = figures_of(fork_graph());
  EXPECT_EQ(figures.ops, 4);
  EXPECT_EQ(figures.sources, 1);
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("chain.json", R"({"format": "emplace.graph/1",
    "name": "chain", "tensors": [{"bytes": 4}, {"shape": [2, 3], "dtype": "float16"}],
    "ops": [{"name": "a", "type": "strange", "inputs": [], "outputs": [0]},
            {"name": "b", "type": "mm", "inputs": [0], "outputs": [1], "flops": 5}]})");
  const ModelSummary summary = summarize_model({.model = path, .cluster = {}});
  EXPECT_THAT(summary.ops_without_flops, ElementsAre(Pair("strange", 1)));
  EXPECT_EQ(summary.tensors_without_shape, 1);
  EXPECT_THAT(summary.dtypes, ElementsAre(Pair("float16", 12)));
  EXPECT_EQ(summary.work.samples, 0);
}

TEST(ModelSummary, names_the_file_that_is_no_model) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("notes.txt", "no model");
  for (const std::optional<std::int64_t> batch : {std::optional<std::int64_t>(), {4}}) {
    const ProblemRequest request{.model = path, .cluster = {}, .batch = batch};
    EXPECT_THAT(error_text([&] { summarize_model(request); }),
                ::testing::StartsWith(path + ": is not a model"));
  }
  EXPECT_THAT(error_text([&] { with_batch({.model = path, .cluster = {}, .batch = 4}); }),
              ::testing::StartsWith(path + ": is not a model"));
}

}  // namespace
}  // namespace emplace
