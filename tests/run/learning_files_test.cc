#include "run/learning_files.h"

#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/portfolio.h"
#include "support/command.h"
#include "support/error_text.h"
#include "support/learned_placers.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LearningTest : public ::testing::Test {
 protected:
  std::string error(const LearningSettings& settings, const std::string& placers,
                    std::size_t problems = 1) const {
    const std::vector<PlacerRun> runs = make_runs(placers, "own");
    return error_text([&] {
      check_learning(settings, runs, problems);
      open_learning_files(settings, runs, false);
    });
  }

  testing::TemporaryFolder folder_;
};

TEST_F(LearningTest, are_refused_for_placers_that_do_not_learn) {
  EXPECT_EQ(error({}, "heft"), "");
  EXPECT_EQ(error({.checkpoint = folder_.path("state")}, "heft"),
            "checkpoint " + folder_.path("state") +
                " is for placers that learn, and 'heft' is none of them");
  EXPECT_THAT(error({.device = "cpu"}, "heft,metis"),
              HasSubstr("device cpu is for placers that learn, and 'heft'"));
  EXPECT_THAT(error({.curves = folder_.path("curves")}, "auto"), HasSubstr("'auto' is none"));
  EXPECT_EQ(folder_.num_files(), 0U);
}

TEST(LearningFiles, begin_a_checkpoint_only_where_there_is_none) {
  const testing::TemporaryFolder folder;
  const auto open = [](const std::string& path, bool resume) {
    return error_text([&] { LearningFiles({.checkpoint = path, .resume = resume}); });
  };
  const std::string old = folder.write("old", "bytes");
  EXPECT_THAT(open(old, false), HasSubstr("old: exists; resume it, or give another name"));
  EXPECT_EQ(open(old, true), "");
  EXPECT_EQ(folder.read("old"), "bytes") << "opening changes nothing";
  EXPECT_THAT(open(folder.path("none"), true), HasSubstr("none"));
  EXPECT_THAT(open(folder.write("empty", ""), true), HasSubstr("empty: is empty"));
  std::filesystem::create_directory(folder.path("folder"));
  EXPECT_THAT(open(folder.path("folder"), false), HasSubstr("folder: is a directory"));
}

TEST(LearningFiles, how_often_is_a_number) {
  const testing::TemporaryFolder folder;
  for (const double seconds : {0.0, -1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(
        error_text([&] {
          LearningFiles({.checkpoint = folder.path("state"), .checkpoint_seconds = seconds});
        }),
        HasSubstr("expected a number from 0.001"));
  }
}

TEST(LearningFiles, write_what_a_run_saves_and_hand_on_what_it_resumes) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("state");
  std::vector<std::int64_t> rounds;
  const auto listen = [&](const TrainingPoint& point) { rounds.push_back(point.round); };
  {
    LearningFiles files({.device = "cuda:1",
                         .curves = folder.path("curves"),
                         .checkpoint = path,
                         .checkpoint_seconds = 5});
    Learning learning;
    files.attach(learning, listen);
    EXPECT_EQ(learning.device, "cuda:1");
    EXPECT_EQ(learning.save_seconds, 5);
    EXPECT_EQ(learning.resume, "");
    learning.save("first");
    learning.save("second");
    learning.on_round({.round = 1, .evaluations = 10, .best = 5});
    EXPECT_FALSE(files.failure());
  }
  EXPECT_EQ(folder.read("state"), "second");
  EXPECT_EQ(rounds, std::vector<std::int64_t>{1});
  EXPECT_THAT(folder.read("curves/curves.csv"), HasSubstr("\n1,10,"));

  LearningFiles again({.checkpoint = path, .resume = true});
  Learning learning;
  again.attach(learning, listen);
  EXPECT_EQ(learning.resume, "second");
  EXPECT_EQ(learning.resume_name, path);
  EXPECT_EQ(learning.device, "cpu");
}

TEST(LearningFiles, say_what_could_not_be_written_and_take_a_later_try) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("there"));
  const std::string path = folder.path("there/state");
  LearningFiles files({.checkpoint = path});
  Learning learning;
  files.attach(learning, [](const TrainingPoint&) {});
  std::filesystem::remove_all(folder.path("there"));
  learning.save("lost");
  ASSERT_TRUE(files.failure());
  EXPECT_THAT(*files.failure(), HasSubstr("there/state"));
  std::filesystem::create_directory(folder.path("there"));
  learning.save("kept");
  EXPECT_FALSE(files.failure());
}

// What needs a placer that learns.
class LearningRuns : public LearningTest {
 protected:
  void SetUp() override {
    if (learned_placers().empty()) GTEST_SKIP() << "built without learned placers";
  }
};

TEST_F(LearningRuns, have_one_checkpoint_for_one_run) {
  const std::string state = folder_.path("state");
  EXPECT_EQ(error({.checkpoint = state}, "heft,post"), "");
  EXPECT_THAT(error({.checkpoint = state}, "post,hdp"), HasSubstr("for one run, and these are 2"));
  EXPECT_THAT(error({.checkpoint = state}, "post", 3),
              HasSubstr("for one run: every set of devices that is tried has one of its own"));
  EXPECT_THAT(error({.curves = folder_.path("c")}, "post", 2), HasSubstr("for one run"));
  EXPECT_THAT(error({.checkpoint = folder_.path("no/state")}, "post"),
              AllOf(HasSubstr("no/state"), HasSubstr("no folder")));
  EXPECT_EQ(error({.device = "cuda:0"}, "post", 3), "") << "a device is for all of them";
}

TEST_F(LearningRuns, keep_the_curves_of_several_runs_apart) {
  const std::string curves = folder_.path("curves");
  const auto runs = make_runs("heft,post,post(lr=0.1),post", "own,pct", 4);
  check_learning({.curves = curves + "/"}, runs, 1);
  const auto files = open_learning_files({.curves = curves + "/"}, runs, false);
  ASSERT_EQ(files.size(), runs.size());
  EXPECT_EQ(files[0], nullptr) << "heft does not learn";
  EXPECT_NE(files[2], nullptr);
  EXPECT_NE(files[3], nullptr) << "learned under pct";
  for (const auto& own : files) {
    if (own == nullptr) continue;
    Learning learning;
    own->attach(learning, [](const TrainingPoint&) {});
    learning.on_round({.round = 1, .evaluations = 10, .best = 5});
  }
  for (const std::string name : {"post-4", "post-pct-4", "post-lr=0.1-4", "post-4.2"}) {
    EXPECT_TRUE(folder_.has("curves/" + name + "/curves.csv")) << name;
  }
}

}  // namespace
}  // namespace emplace
