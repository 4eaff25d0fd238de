// External placers: the protocol, and programs that do not keep to it.
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "placer/placer.h"

#include "placers/all.h"
#include "placers/external/support/line_process.h"

#include "support/command.h"
#include "support/error_text.h"
#include "support/needed_options.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

constexpr const char* kCase = "training_step_on_three_unequal";

std::shared_ptr<const Problem> problem() {
  return tiny_case(kCase).problem;
}

// "[0, 0, 0]".
std::string everything_on(int device) {
  return nlohmann::json(std::vector<int>(problem()->num_groups(), device)).dump();
}

class ExecTest : public ::testing::Test {
 protected:
  PlaceResult place(const std::string& command, const OptionValues& more = {}) {
    OptionValues options{{"command", command}, {"silence", "20"}, {"grace", "5"}};
    options.insert(options.end(), more.begin(), more.end());
    return all_placers().make({"exec", options})->place(context_, budget_, Rng(3));
  }
  // A shell script whose first line of input, the problem, was read.
  std::string script(const std::string& body) {
    return "sh " + folder_.write("placer.sh", "read problem\n" + body + "\n");
  }
  std::string refusal(const std::string& command, const OptionValues& more = {}) {
    return error_text([&] { place(command, more); });
  }

  testing::TemporaryFolder folder_;
  PlaceContext context_{problem()};
  Budget budget_;
};

TEST_F(ExecTest, improves_on_what_it_begins_with_and_uses_its_budget_to_the_last) {
  budget_.evaluations = 300;
  const PlaceResult result = place(climbing_command());
  EXPECT_THAT(result.notes, IsEmpty());
  Evaluator evaluator(problem());
  const Evaluation found = evaluator.evaluate(result.placement, result.schedule);
  for (DeviceId device = 0; device < problem()->num_devices(); ++device) {
    EXPECT_LT(found, evaluator.evaluate(Placement(problem()->num_ops(), device)));
  }
  // 300 that it asked for, its answer, and a look at what the answer needs.
  EXPECT_GE(context_.evaluations(), 300);
  EXPECT_LE(context_.evaluations(), 302);
}

TEST_F(ExecTest, is_told_the_problem) {
  place(script("echo \"$problem\" > " + folder_.path("told.json") +
               "\necho '{\"place\": " + everything_on(0) + "}'"));
  const auto told = nlohmann::json::parse(folder_.read("told.json"));
  EXPECT_EQ(told["format"], "emplace.placer/1");
  EXPECT_EQ(told["objective"], "step time");
  EXPECT_EQ(told["budget"]["seconds"], Budget::kDefaultSeconds);
  EXPECT_EQ(told["devices"].size(), problem()->num_devices());
  EXPECT_EQ(told["groups"].size(), problem()->num_groups());
  ASSERT_EQ(told["ops"].size(), problem()->num_ops());
  ASSERT_EQ(told["tensors"].size(), problem()->graph().num_tensors());
  for (OpId op = 0; op < problem()->num_ops(); ++op) {
    EXPECT_EQ(told["ops"][op]["name"], problem()->graph().op_name(op));
    EXPECT_EQ(told["ops"][op]["time_ns"][1], problem()->duration(op, 1));
    EXPECT_EQ(told["ops"][op]["group"], static_cast<std::uint32_t>(problem()->group_of(op)));
  }
  EXPECT_FALSE(told["links"].empty());
}

TEST_F(ExecTest, values_are_those_of_the_simulator_and_errors_are_said) {
  place(script("echo '{\"evaluate\": [" + everything_on(1) +
               ", [0]]}'\nread answer\necho "
               "\"$answer\" > " +
               folder_.path("answer.json") + "\necho '{\"place\": null}'"));
  const auto answer = nlohmann::json::parse(folder_.read("answer.json"));
  Evaluator evaluator(problem());
  const Evaluation value = evaluator.evaluate(Placement(problem()->num_ops(), 1));
  EXPECT_EQ(answer["results"][0]["step_ns"], value.step);
  EXPECT_EQ(answer["results"][0]["fits"], value.fits());
  EXPECT_EQ(answer["results"][0]["shortfall_bytes"], value.overflow);
  EXPECT_THAT(answer["results"][1]["error"].get<std::string>(), HasSubstr("one for each group"));
  EXPECT_FALSE(answer.contains("stop"));
}

TEST_F(ExecTest, says_what_it_expected_of_a_program_that_ends_early) {
  EXPECT_THAT(refusal("sh -c 'exit 3'"),
              AllOf(HasSubstr("sh -c 'exit 3'"), HasSubstr("ended with exit code 3"),
                    HasSubstr("{\"place\": [0, 1, ...]}")));
  EXPECT_THAT(refusal("sh -c 'kill -SEGV $$'"), HasSubstr("was ended by signal 11"));
  EXPECT_THAT(refusal("sh -c 'sleep 600 & exit 5'"), HasSubstr("ended with exit code 5"));
}

TEST_F(ExecTest, says_what_it_expected_of_garbage) {
  EXPECT_THAT(refusal(script("echo hello; read more")),
              AllOf(HasSubstr("said 'hello'"), HasSubstr("no JSON object")));
  EXPECT_THAT(refusal(script("echo '{\"plaice\": []}'; read more")),
              HasSubstr("unknown field 'plaice'"));
  EXPECT_THAT(refusal(script("echo '{\"place\": [99]}'; read more")),
              AllOf(HasSubstr("one for each group"), HasSubstr("instead of 1")));
  // 2^64 - 1 and 2^63 are not -1 and -2^63.
  for (const std::string request :
       {"{\"place\": [18446744073709551615]}", "{\"place\": [9223372036854775808]}",
        "{\"place\": null, \"priorities\": [18446744073709551615]}"}) {
    EXPECT_THAT(refusal(script("echo '" + request + "'; read more")),
                HasSubstr("expected a list of whole numbers below 2^63"))
        << request;
  }
  EXPECT_THAT(refusal(script("echo '{\"place\": null}'; read more")),
              HasSubstr("nothing was evaluated"));
}

TEST_F(ExecTest, says_what_it_cannot_start) {
  EXPECT_THAT(refusal("no-such-program-here"),
              AllOf(HasSubstr("'no-such-program-here' cannot be started"), HasSubstr("PATH")));
  EXPECT_THAT(refusal(""), HasSubstr("command is missing"));
  EXPECT_THAT(refusal("sh -c 'exit"), HasSubstr("quotation"));
}

TEST_F(ExecTest, does_not_wait_for_a_program_that_hangs) {
  const auto start = Clock::now();
  EXPECT_THAT(refusal("sleep 60", {{"silence", "0.3"}}), HasSubstr("said nothing for 0.3 s"));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
}

// Output without end: in one line, in very many, and nested deeper than any stack.
TEST_F(ExecTest, does_not_read_without_end) {
  EXPECT_THAT(refusal(script("tr '\\0' x < /dev/zero")),
              HasSubstr("a line that does not end within 256 MiB"));
  EXPECT_THAT(refusal("yes"), HasSubstr("said 'y'"));
  EXPECT_THAT(refusal(script("head -c 5000000 /dev/zero | tr '\\0' '['; echo; read more")),
              AllOf(HasSubstr("said '[[["), HasSubstr("no JSON object")));
  const auto start = Clock::now();
  budget_.evaluations = 200;
  const PlaceResult result =
      place(script("yes '{\"evaluate\": " + everything_on(0) + "}'"), {{"grace", "0.2"}});
  EXPECT_EQ(result.placement.size(), problem()->num_ops()) << "its questions end with the budget";
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(60));
}

TEST_F(ExecTest, answers_with_the_best_so_far_when_the_program_fails) {
  const PlaceResult result =
      place(script("echo '{\"evaluate\": " + everything_on(1) + "}'\nread answer\nexit 7"));
  EXPECT_EQ(result.placement, Placement(problem()->num_ops(), 1));
  EXPECT_THAT(result.notes, Contains(AllOf(HasSubstr("ended with exit code 7"),
                                           HasSubstr("the best of the placements"))));
}

TEST_F(ExecTest, ends_when_it_is_cancelled) {
  std::atomic<bool> cancelled{false};
  budget_.cancelled = &cancelled;
  const auto start = Clock::now();
  std::thread cancel([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cancelled = true;
  });
  const PlaceResult result =
      place(script("echo '{\"evaluate\": " + everything_on(1) + "}'\nread answer\nsleep 60"),
            {{"grace", "0.2"}});
  cancel.join();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(result.placement, Placement(problem()->num_ops(), 1));
}

TEST_F(ExecTest, tells_the_program_to_stop) {
  budget_.evaluations = 1;
  place(script("echo '{\"evaluate\": [" + everything_on(1) + ", " + everything_on(0) +
               "]}'\nread answer\necho \"$answer\" > " + folder_.path("answer.json") +
               "\necho '{\"place\": null}'"));
  const auto answer = nlohmann::json::parse(folder_.read("answer.json"));
  EXPECT_EQ(answer["results"].size(), 1U);
  EXPECT_EQ(answer["stop"], "evaluations");
}

// Whether a process runs, as opposed to being gone or waiting for its parent to notice.
bool runs(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string number, name, state;
  return file >> number >> name >> state && state != "Z" && state != "X";
}

TEST_F(ExecTest, leaves_no_process_behind) {
  place(script("sleep 600 > /dev/null &\necho $! > " + folder_.path("pid") +
               "\necho '{\"place\": " + everything_on(0) + "}'"));
  const auto pid = static_cast<pid_t>(std::stol(folder_.read("pid")));
  for (int i = 0; i < 200 && runs(pid); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(runs(pid));
}

TEST(CommandWords, are_split_without_a_shell) {
  EXPECT_THAT(command_words("python3  a.py --x=1"), ElementsAre("python3", "a.py", "--x=1"));
  EXPECT_THAT(command_words("a 'b c' \"d 'e'\" f\\ g ''"),
              ElementsAre("a", "b c", "d 'e'", "f g", ""));
  EXPECT_THAT(command_words("a $HOME *.txt ; b | c"),
              ElementsAre("a", "$HOME", "*.txt", ";", "b", "|", "c"));
}

}  // namespace
}  // namespace emplace
