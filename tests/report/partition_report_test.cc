#include "report/partition_report.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run/problem_request.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PartitionAnswer divided_by(const std::string& method) {
  const auto problem = load_problem(
      {.model = "zoo:stacked-rnn:layers=1,hidden=256,sequence=2,batch=64", .cluster = "4xp100"});
  PartitionOptions options;
  options.method = method;
  options.budget.evaluations = 1;
  return find_partition(problem, options);
}

std::string one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n   ", at)) != std::string::npos;) {
    text.replace(at, 4, " ");
  }
  return text;
}

TEST(PartitionReport, names_what_the_bound_counts) {
  PartitionAnswer answer = divided_by("data-parallel");
  const auto text = [&](SendingInBound sending) {
    answer.bound.sending = sending;
    return one_line(to_text(answer));
  };
  EXPECT_THAT(text(SendingInBound::kCounted), HasSubstr("for computing and what it has to send:"));
  EXPECT_THAT(
      text(SendingInBound::kMeasured),
      HasSubstr("for computing alone (measured collectives may be sooner than links say):"));
  EXPECT_THAT(text(SendingInBound::kNoTime), HasSubstr("(there was no time to count what"));
  EXPECT_THAT(text(SendingInBound::kNowhere), HasSubstr("for computing alone:"));
  EXPECT_FALSE(nlohmann::json::parse(to_json(answer))["lower_bound_counts_sending"]);
}

TEST(PartitionReport, says_whether_costs_that_are_added_up_are_the_least) {
  EXPECT_THAT(one_line(to_text(divided_by("optcnn"))), HasSubstr("it is proven that none"));
  PartitionAnswer answer = divided_by("optcnn(ways=2)");
  EXPECT_THAT(one_line(to_text(answer)), HasSubstr("it did not weigh all plans"));
  answer.chosen.added_cost->lower_bound = 1'000'000;
  EXPECT_THAT(one_line(to_text(answer)), HasSubstr("choose costs less than 1.000 ms"));
  EXPECT_FALSE(nlohmann::json::parse(to_json(answer))["added_cost"]["proven"]);
}

TEST(PartitionReport, names_methods_whose_plans_are_faulty) {
  PartitionAnswer answer = divided_by("data-parallel");
  EXPECT_THAT(to_text(answer), Not(HasSubstr("faulty")));
  answer.failed.emplace_back("fsdp", "op 'x': no weights");
  EXPECT_THAT(one_line(to_text(answer)), HasSubstr("a defect: fsdp (op 'x': no weights)."));
  EXPECT_EQ(nlohmann::json::parse(to_json(answer))["failed"][0]["method"], "fsdp");
}

TEST(PartitionReport, says_how_many_devices_compute_the_same) {
  PartitionAnswer answer = divided_by("data-parallel");
  answer.others.clear();
  EXPECT_THAT(to_text(answer), Not(HasSubstr("Copies")));
  answer.chosen.copies = 2;
  EXPECT_THAT(one_line(to_text(answer)),
              AllOf(HasSubstr("Copies: so many devices"), HasSubstr("with data-parallel 2.0.")));
}

// On purpose, which is no want of examples.
TEST(PartitionReport, says_that_machines_do_the_same) {
  PartitionAnswer answer = divided_by("data-parallel");
  answer.others.clear();
  answer.on_fewer.reset();
  answer.chosen.copies = 2;
  answer.chosen.alike = 2;
  EXPECT_THAT(one_line(to_text(answer)),
              AllOf(HasSubstr("With data-parallel each of 2 machines does the same, as links "
                              "between them are slow."),
                    Not(HasSubstr("Copies")), Not(HasSubstr("--workers"))));
  answer.on_fewer = answer.chosen;
  answer.on_fewer->alike = 1;
  answer.on_fewer->copies = 1;
  answer.on_fewer->peaks = {1, 1, 0, 0};
  EXPECT_THAT(one_line(to_text(answer)), HasSubstr("links between them are slow; --workers 2 is "
                                                   "as fast."));
}

TEST(PartitionReport, says_of_each_way_how_many_machines_do_the_same) {
  PartitionAnswer answer = divided_by("data-parallel");
  answer.others.clear();
  answer.on_fewer.reset();
  answer.chosen.alike = 4;
  answer.others.push_back(answer.chosen);
  answer.others[0].name = "tofu";
  answer.others[0].alike = 2;
  EXPECT_THAT(one_line(to_text(answer)), AllOf(HasSubstr("With data-parallel each of 4 machines"),
                                               HasSubstr("With tofu each of 2 machines")));
}

// What is against dividing among all devices need not be against fewer.
TEST(PartitionReport, says_that_fewer_devices_were_not_tried) {
  PartitionAnswer answer = divided_by("data-parallel");
  answer.others.clear();
  answer.on_fewer.reset();
  answer.one_device->step = answer.chosen.step - 2;
  answer.one_device->fits = true;
  answer.placed.step = answer.chosen.step;
  EXPECT_THAT(verdict(answer),
              AllOf(HasSubstr("Partitioning does not pay"), Not(HasSubstr("fewer devices"))));
  answer.fewer_left_out = true;
  EXPECT_THAT(verdict(answer), AllOf(HasSubstr("Partitioning among all devices does not pay"),
                                     HasSubstr("no time to try fewer devices")));
  answer.one_device.reset();
  answer.placed.fits = true;
  answer.placed.step = answer.chosen.step - 1;
  EXPECT_THAT(verdict(answer), AllOf(HasSubstr("in parts on all devices."),
                                     HasSubstr("no time to try fewer devices")));
  answer.placed.fits = false;
  EXPECT_THAT(verdict(answer), Not(HasSubstr("fewer devices"))) << "it is divided";
}

// The bound is for divisions among all devices; fewer may take less.
TEST(PartitionReport, compares_the_bound_with_divisions_among_all_devices) {
  PartitionAnswer answer = divided_by("data-parallel");
  answer.others.clear();
  answer.bound.step = answer.chosen.step;
  answer.on_fewer = answer.chosen;
  answer.on_fewer->step /= 2;
  EXPECT_THAT(one_line(to_text(answer)),
              AllOf(HasSubstr("No division among all 4 devices takes less"),
                    HasSubstr("at most 1.00 times as fast is possible")));
}

}  // namespace
}  // namespace emplace
