// Learning curves as other programs read them.
#include "io/training_curves.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "support/command.h"
#include "support/error_text.h"
#include "support/event_reader.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ReadEvent;
using ::testing::StartsWith;
using Begin = TrainingCurves::Begin;

TrainingPoint point(std::int64_t round) {
  TrainingPoint point;
  point.round = round;
  point.evaluations = round * 20;
  point.seconds = static_cast<double>(round) * 0.25;
  point.simulated_seconds = static_cast<double>(round) * 15;
  point.best = round < 2 ? 0 : 1'500'000'000 - round;
  point.mean_seconds = 2.5;
  point.entropy = 1.25;
  point.kl = 1e-7;
  return point;
}

std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

std::vector<std::int64_t> steps(const std::vector<ReadEvent>& events) {
  std::vector<std::int64_t> all;
  for (const ReadEvent& event : events) all.push_back(event.step);
  return all;
}

class Curves : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path("curves"); }
  std::vector<std::string> rows() const { return lines(folder_.read("curves/curves.csv")); }

  void write(Begin begin, std::int64_t first, std::int64_t last) const {
    TrainingCurves curves(path(), begin);
    for (std::int64_t round = first; round <= last; ++round) curves.add(point(round));
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Curves, table_has_a_row_a_point_and_nothing_for_what_is_not_known) {
  write(Begin::kAnew, 1, 2);
  EXPECT_THAT(rows(),
              ElementsAre("round,evaluations,seconds,simulated_seconds,best_seconds,round_best_"
                          "seconds,mean_seconds,"
                          "fitting_share,entropy,kl,mean_cost,baseline,gradient_norm,"
                          "groups_used,groups_changed,"
                          "policy_seconds,learner_seconds,evaluation_seconds,waiting_seconds",
                          "1,20,0.25,15,,,2.5,0,1.25,1e-07,0,0,0,,,0,0,0,0",
                          "2,40,0.5,30,1.499999998,,2.5,0,1.25,1e-07,0,0,0,,,0,0,0,0"));
}

TEST_F(Curves, tell_of_groups_where_they_are_learned) {
  TrainingPoint grouping = point(1);
  grouping.groups_used = 77;
  grouping.groups_changed = 0.125;
  {
    TrainingCurves curves(path(), Begin::kAnew);
    curves.add(grouping);
    curves.add(point(2));
  }
  EXPECT_EQ(rows().at(1), "1,20,0.25,15,,,2.5,0,1.25,1e-07,0,0,0,77,0.125,0,0,0,0");
  const std::vector<ReadEvent> events = testing::shown_events(path());
  ASSERT_EQ(events.size(), 2);
  EXPECT_FLOAT_EQ(events[0].scalars.at("groups/used"), 77);
  EXPECT_FLOAT_EQ(events[0].scalars.at("groups/changed"), 0.125);
  EXPECT_FALSE(events[1].scalars.contains("groups/used"));
}

TEST_F(Curves, a_round_without_an_update_says_nothing_of_learning) {
  TrainingPoint unlearned = point(1);
  unlearned.learned = false;
  unlearned.mean_cost = unlearned.baseline = unlearned.gradient_norm = 3;
  TrainingCurves(path(), Begin::kAnew).add(unlearned);
  EXPECT_EQ(rows().at(1), "1,20,0.25,15,,,2.5,0,,,,,,,,0,0,0,0");
  const std::vector<ReadEvent> events = testing::shown_events(path());
  ASSERT_EQ(events.size(), 1);
  EXPECT_TRUE(events[0].scalars.contains("step_time/mean"));
  for (const char* tag : {"policy/entropy", "policy/kl", "learner/mean_cost", "learner/baseline",
                          "learner/gradient_norm"}) {
    EXPECT_FALSE(events[0].scalars.contains(tag)) << tag;
  }
}

TEST_F(Curves, events_are_what_tensorboard_reads) {
  write(Begin::kAnew, 1, 2);
  const std::vector<ReadEvent> events = testing::shown_events(path());
  ASSERT_THAT(steps(events), ElementsAre(20, 40));
  EXPECT_GT(events[0].wall_time, 1.7e9);
  EXPECT_FALSE(events[0].scalars.contains("step_time/best"));
  EXPECT_FLOAT_EQ(events[1].scalars.at("step_time/best"), 1.499999998f);
  EXPECT_FLOAT_EQ(events[1].scalars.at("policy/entropy"), 1.25f);
  EXPECT_FLOAT_EQ(events[1].scalars.at("policy/kl"), 1e-7f);
}

TEST_F(Curves, can_be_read_while_they_grow) {
  TrainingCurves curves(path(), Begin::kAnew);
  for (std::int64_t round = 1; round <= 3; ++round) {
    curves.add(point(round));
    EXPECT_EQ(rows().size(), round + 1);
    EXPECT_EQ(testing::shown_events(path()).size(), round);
  }
}

TEST_F(Curves, nothing_is_replaced_before_the_first_point) {
  write(Begin::kAnew, 1, 3);
  const TrainingCurves curves(path(), Begin::kAnew);
  EXPECT_EQ(rows().size(), 4);
  EXPECT_EQ(testing::shown_events(path()).size(), 3);
}

TEST_F(Curves, a_folder_is_one_run_s_at_a_time) {
  {
    TrainingCurves curves(path(), Begin::kAnew);
    curves.add(point(1));
    for (const Begin begin : {Begin::kAnew, Begin::kGoOn}) {
      EXPECT_THAT(error_text([&] { TrainingCurves(path(), begin); }),
                  HasSubstr("curves.csv: another run is using it"));
    }
    curves.add(point(2));
  }
  EXPECT_EQ(rows().size(), 3);
  EXPECT_THAT(steps(testing::shown_events(path())), ElementsAre(20, 40));
  EXPECT_FALSE(folder_.has("curves/curves.csv.lock"));
  write(Begin::kAnew, 1, 1);
  EXPECT_EQ(rows().size(), 2);
}

TEST_F(Curves, a_folder_that_cannot_be_made_is_found_before_the_first_point) {
  EXPECT_THAT(error_text([] { TrainingCurves("/proc/x", Begin::kAnew); }),
              HasSubstr("/proc/x: cannot be made: "));
  EXPECT_THAT(error_text([] { TrainingCurves("/proc", Begin::kAnew); }),
              HasSubstr("cannot be written"));
}

TEST_F(Curves, a_new_run_replaces_what_was_there) {
  write(Begin::kAnew, 1, 5);
  folder_.write("curves/events.out.tfevents.1.another-program", "");
  write(Begin::kAnew, 1, 2);
  EXPECT_EQ(rows().size(), 3);
  EXPECT_TRUE(folder_.has("curves/events.out.tfevents.1.another-program"));
  std::filesystem::remove(folder_.path("curves/events.out.tfevents.1.another-program"));
  EXPECT_THAT(steps(testing::shown_events(path())), ElementsAre(20, 40));
}

// Rounds after the last checkpoint were written, and are done again.
TEST_F(Curves, a_resumed_run_goes_on_without_the_rounds_it_repeats) {
  write(Begin::kAnew, 1, 5);
  std::ofstream(folder_.path("curves/curves.csv"), std::ios::app) << "6,12";  // then it was killed
  write(Begin::kGoOn, 4, 7);
  EXPECT_EQ(rows().size(), 8);
  for (std::size_t i = 1; i < rows().size(); ++i) {
    EXPECT_THAT(rows()[i], StartsWith(std::to_string(i) + "," + std::to_string(i * 20) + ","));
  }
  EXPECT_THAT(steps(testing::shown_events(path())), ElementsAre(20, 40, 60, 80, 100, 120, 140));
}

TEST_F(Curves, a_run_can_be_resumed_without_curves_of_before) {
  write(Begin::kGoOn, 4, 5);
  EXPECT_EQ(rows().size(), 3);
  EXPECT_THAT(steps(testing::shown_events(path())), ElementsAre(80, 100));
}

void expect_refused(const std::string& folder, Begin begin, const std::string& message) {
  try {
    TrainingCurves curves(folder, begin);
    FAIL() << folder;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST_F(Curves, bad_folders_are_refused_at_once) {
  expect_refused(folder_.write("file", "text"), Begin::kAnew, "is a file");
  std::filesystem::create_directory(path());
  folder_.write("curves/curves.csv", "a,b\n1,2\n");
  expect_refused(path(), Begin::kGoOn, "curves.csv: is not a table of learning curves");
  std::filesystem::create_symlink("circle", folder_.path("circle"));
  expect_refused(folder_.path("circle"), Begin::kAnew, "circle: cannot be looked at");
}

}  // namespace
}  // namespace emplace
