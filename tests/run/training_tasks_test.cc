#include "run/training_tasks.h"

#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TrainingTasks, lists_take_ranges_apart) {
  EXPECT_THAT(list_models({"family:ptb:sequence=2,seed=0..2"}),
              ElementsAre("family:ptb:sequence=2,seed=0", "family:ptb:sequence=2,seed=1",
                          "family:ptb:sequence=2,seed=2"));
  EXPECT_THAT(list_clusters({"2xp100", "4xp100"}), ElementsAre("2xp100", "4xp100"));
}

TEST(TrainingTasks, shares_of_memory_are_numbers_above_0) {
  for (const double share : {0.0, -1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(error_text([&] { cross({"family:ptb:sequence=2"}, {"2xp100"}, {share}, 1); }),
                HasSubstr(": expected a share above 0"));
  }
}

TEST(TrainingTasks, a_folder_stands_for_its_model_files) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("graphs"));
  EXPECT_THAT(error_text([&] { list_models({folder.path("graphs")}); }),
              HasSubstr("graphs: has no model file"));
  const std::string b = folder.write("graphs/b.json", "{}");
  const std::string a = folder.write("graphs/a.onnx", "");
  folder.write("graphs/notes.txt", "");
  EXPECT_THAT(list_models({folder.path("graphs")}), ElementsAre(a, b));
}

TEST(TrainingTasks, bad_lists_are_refused) {
  EXPECT_THAT(error_text([] { list_models({"family:ptb:seed=5..2"}); }), HasSubstr("seed=5..2"));
  EXPECT_THAT(error_text([] { list_models({}); }), HasSubstr("graphs: expected at least one"));
  EXPECT_THAT(error_text([] { list_clusters({}); }), HasSubstr("clusters: expected at least one"));
}

TEST(TrainingTasks, cross_every_graph_with_every_cluster_and_share_of_memory) {
  const std::vector<std::string> models{"family:ptb:sequence=2,seed=0",
                                        "family:ptb:sequence=2,seed=1"};
  const auto plain = cross(models, {"2xp100", "4xp100"}, {}, 2);
  ASSERT_EQ(plain.size(), 4U);
  EXPECT_EQ(plain[0].problem->num_devices(), 2);
  EXPECT_EQ(plain[0].problem->cluster().device(0).memory, read_cluster("2xp100")->device(0).memory);
  const auto tight = cross(models, {"2xp100"}, {0.6, 0.9}, 1);
  ASSERT_EQ(tight.size(), 4U);
  EXPECT_LT(tight[0].problem->cluster().device(0).memory,
            tight[1].problem->cluster().device(0).memory);
  EXPECT_LT(tight[1].problem->cluster().device(0).memory,
            plain[0].problem->cluster().device(0).memory);
}

}  // namespace
}  // namespace emplace
