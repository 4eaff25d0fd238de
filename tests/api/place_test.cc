// Simulation, placement and comparison by the public headers alone.
#include <atomic>
#include <cerrno>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/fork_model.h"
#include "io/file_calls.h"
#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const Placement kApart{0, 0, 1, 0};
const Placement kTogether{0, 0, 0, 0};

PlaceOptions with(const std::string& placer, std::int64_t evaluations = 200) {
  PlaceOptions options;
  options.placer = placer;
  options.budget.evaluations = evaluations;
  return options;
}

#ifdef EMPLACE_LEARN
// As on a full disk.
struct NoRoom final : FileCalls {
  NoRoom() : before(replace_file_calls(this)) {}
  ~NoRoom() override { replace_file_calls(before); }
  ssize_t write(int, const void*, std::size_t) override {
    errno = ENOSPC;
    return -1;
  }
  FileCalls* before;
};

TEST(Place, notes_say_that_a_checkpoint_could_not_be_written) {
  const testing::TemporaryFolder folder;
  PlaceOptions options = with("post", 30);
  options.learning.checkpoint = folder.path("state");
  const NoRoom no_room;
  const Answer answer = place(fork_on(2), options);
  EXPECT_THAT(answer.notes(), ::testing::Contains(AllOf(HasSubstr("state: cannot be written"),
                                                        HasSubstr("No space left"))));
}
#endif

TEST(Simulate, says_when_everything_happens) {
  const auto problem = fork_on(2);
  const Timeline timeline = simulate(problem, kApart);
  EXPECT_EQ(timeline.step, 111'000);
  EXPECT_EQ(timeline.ops[3].start, 101'000);
  ASSERT_EQ(timeline.transfers.size(), 1U);
  EXPECT_EQ(timeline.transfers[0].from, 1);
  EXPECT_EQ(timeline.transfers[0].start, 100'000);
  EXPECT_EQ(timeline.transfer_bytes, 1000);
  EXPECT_EQ(timeline.devices[1].busy, 100'000);
  EXPECT_TRUE(timeline.fits());
  EXPECT_EQ(simulate(problem, kTogether, {{0, 1, 2, 0}}).ops[1].start, 100'000)
      << "the right branch has the higher priority";
}

TEST(Simulate, refuses_what_is_no_placement) {
  const auto problem = fork_on(2);
  EXPECT_NE(error_text([&] { simulate(problem, {0, 0}); }), "");
  EXPECT_THAT(error_text([&] { simulate(problem, {0, 0, 5, 0}); }), HasSubstr("op 'right'"));
  EXPECT_THAT(error_text([&] {
                simulate_all(problem, {kApart, {0, 0, 5, 0}});
              }),
              AllOf(HasSubstr("placement 1"), HasSubstr("op 'right'")));
}

TEST(SimulateAll, is_simulate_for_each_on_any_number_of_threads) {
  const auto problem = fork_on(2, 2500);  // too little on gpu0 for either
  std::vector<Placement> placements;
  for (int i = 0; i < 50; ++i) placements.push_back(i % 3 == 0 ? kApart : kTogether);
  for (const int threads : {1, 3}) {
    const std::vector<StepValue> values = simulate_all(problem, placements, threads);
    ASSERT_EQ(values.size(), placements.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Timeline alone = simulate(problem, placements[i]);
      EXPECT_EQ(values[i].step, alone.step);
      EXPECT_EQ(values[i].overflow, alone.devices[0].peak - 2500);
    }
  }
}

TEST(Place, finds_and_proves_the_best) {
  const auto problem = fork_on(2);
  const Answer answer = place(problem, with("auto", 2000));
  EXPECT_EQ(answer.time(), 111'000);
  EXPECT_TRUE(answer.fits());
  EXPECT_TRUE(answer.optimal());
  EXPECT_EQ(answer.gap(), 0);
  EXPECT_EQ(answer.bound().step, 111'000);
  EXPECT_EQ(answer.placer(), "auto");
  EXPECT_EQ(answer.seed(), 1U);
  EXPECT_GT(answer.evaluations(), 0);
  EXPECT_EQ(simulate(problem, answer.placement(), answer.schedule()).step, answer.time());
  EXPECT_EQ(answer.used(0), answer.timeline().devices[0].peak);
}

TEST(Place, of_several_placers_is_the_best_of_them) {
  const Answer answer = place(fork_on(2), with("single,expert"));
  EXPECT_EQ(answer.placer(), "expert");
  EXPECT_EQ(answer.time(), 111'000);
  EXPECT_NEAR(answer.gap(), 1.0 / 110, 1e-9);
}

TEST(Place, minimises_the_objective) {
  PlaceOptions options = with("auto", 2000);
  options.objective = StreamPeriod{};
  const Answer answer = place(fork_on(2), options);
  EXPECT_EQ(answer.time(), 110'000);
  EXPECT_GE(answer.timeline().step, answer.time());
  EXPECT_THAT(answer.to_text(), HasSubstr("period"));
}

TEST(Place, uses_no_more_devices_than_allowed) {
  PlaceOptions options = with("auto");
  options.most_devices = 1;
  const Answer answer = place(fork_on(3), options);
  EXPECT_EQ(std::set<DeviceId>(answer.placement().begin(), answer.placement().end()).size(), 1U);
  EXPECT_TRUE(answer.optimal()) << "nothing on one device is faster";
}

TEST(Place, begins_from_starts) {
  PlaceOptions options = with("hill_climb", 1);
  options.starts = {{kApart, {}}};
  EXPECT_EQ(place(fork_on(2), options).time(), 111'000);
  options.starts = {{{0, 0, 7, 0}, {}}};
  EXPECT_THAT(error_text([&] { place(fork_on(2), options); }),
              AllOf(HasSubstr("start 1"), HasSubstr("op 'right'")));
}

TEST(Place, is_stopped_by_whoever_made_the_budget) {
  PlaceOptions options = with("auto");
  options.budget.evaluations = std::nullopt;
  options.budget.seconds = 1000;
  std::atomic<bool> cancelled{false};
  options.budget.cancelled = &cancelled;
  const auto problem =
      compile(read_model("zoo:rnnlm:sequence=4,batch=4").graph, read_cluster("4xp100"));
  std::thread stop([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cancelled = true;
  });
  const Answer answer = place(problem, options);
  stop.join();
  EXPECT_LT(answer.search_seconds(), 100);
  EXPECT_EQ(error_text([&] { simulate(problem, answer.placement()); }), "");
}

TEST(Place, tells_how_far_it_has_come) {
  PlaceOptions options = with("mcmc");
  options.budget.evaluations = std::nullopt;
  options.budget.seconds = 1;
  std::vector<std::string> lines;
  options.on_progress = [&](const Progress& progress) { lines.push_back(progress.line); };
  place(compile(read_model("zoo:rnnlm:sequence=4,batch=4").graph, read_cluster("4xp100")), options);
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines.back(), HasSubstr("mcmc"));
}

TEST(Place, refuses_bad_options) {
  const auto problem = fork_on(2);
  const auto error = [&](const PlaceOptions& options) {
    return error_text([&] { place(problem, options); });
  };
  EXPECT_THAT(error(with("hefft")), HasSubstr("did you mean 'heft'"));
  EXPECT_THAT(error(with("heft(speed=1)")), HasSubstr("'speed'"));
  PlaceOptions options = with("heft");
  options.scheduler = "lifo";
  EXPECT_THAT(error(options), HasSubstr("unknown scheduler 'lifo'"));
  options = with("heft");
  options.learning.checkpoint = "state";
  EXPECT_THAT(error(options), HasSubstr("checkpoint state is for placers that learn"));
}

TEST(Place, throws_when_it_is_proven_that_nothing_fits) {
  try {
    place(fork_on(2, 500), with("heft"));
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("no placement of 'fork' fits"));
  }
}

TEST(Answer, explains_itself) {
  const Answer answer = place(fork_on(2), with("expert"));
  EXPECT_THAT(answer.to_text(), AllOf(HasSubstr("step time 111.0 us"), HasSubstr("gpu1")));
  EXPECT_THAT(answer.explanation(), AllOf(HasSubstr("What limits the step"),
                                          HasSubstr("would take 210.0 us, 1.89 times as long")));
  const Json json = Json::parse(answer.to_json());
  EXPECT_EQ(json["step_ns"], 111'000);
  EXPECT_EQ(json["placer"], "expert");
  EXPECT_EQ(json["explanation"]["chain"]["transfer_ns"], 1'000);
}

TEST(Answer, is_written_and_read_back) {
  const testing::TemporaryFolder folder;
  const auto problem = fork_on(2);
  const Answer answer = place(problem, with("heft"));
  const std::string path = folder.write("p.json", answer.placement_json());
  const SavedPlacement read = read_placement(path, *problem);
  EXPECT_EQ(read.placement, answer.placement());
  EXPECT_EQ(read.schedule.priorities, answer.schedule().priorities);
  EXPECT_THAT(error_text([&] { read_placement(folder.path("none.json"), *problem); }),
              HasSubstr("none.json"));
  const Json trace = Json::parse(answer.trace_json());
  EXPECT_FALSE(trace["traceEvents"].empty());
  EXPECT_EQ(answer.trace_json(), trace_json(*problem, answer.placement(), answer.timeline()));
}

TEST(Assess, says_of_a_given_placement_what_place_says_of_its_own) {
  const auto problem = fork_on(2, 2500);
  const Answer together = assess(problem, kTogether);
  EXPECT_EQ(together.time(), 210'000);
  EXPECT_FALSE(together.fits());
  EXPECT_FALSE(together.optimal());
  EXPECT_THAT(together.explanation(), HasSubstr("504 B short"));
  EXPECT_FALSE(Json::parse(together.to_json()).contains("placer")) << "nobody found it";
  EXPECT_EQ(assess(problem, kApart, {}, StreamPeriod{Overlap::kNone}).time(), 111'000);
  EXPECT_NE(error_text([&] { assess(problem, {0}); }), "");
}

TEST(Compare, gives_every_answer_the_best_first) {
  CompareOptions options;
  options.placer = "single,expert,single(device=9),random";
  options.budget.evaluations = 100;
  options.seeds = 2;
  const std::vector<Answer> answers = compare(fork_on(2), options);
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].time(), 111'000);
  for (std::size_t i = 1; i < answers.size(); ++i) {
    EXPECT_LE(answers[i - 1].time(), answers[i].time());
  }
  ASSERT_FALSE(answers[0].notes().empty());
  EXPECT_THAT(answers[0].notes().back(), HasSubstr("device 9")) << "who could not cope";
}

TEST(Compare, may_keep_each_placers_best_order_alone) {
  CompareOptions options;
  options.placer = "single,heft";
  options.scheduler = "all";
  options.budget.evaluations = 100;
  EXPECT_GT(compare(fork_on(2), options).size(), 2U);
  options.best_orders = true;
  EXPECT_EQ(compare(fork_on(2), options).size(), 2U);
}

TEST(ListPlacers, describes_all_that_a_spec_can_name) {
  std::set<std::string> families;
  for (const MethodInfo& info : list_placers()) {
    families.insert(info.family);
    EXPECT_FALSE(info.summary.empty()) << info.key;
  }
  for (const char* family : {"heuristic", "partition", "search", "exact"}) {
    EXPECT_TRUE(families.contains(family)) << family;
  }
  EXPECT_GT(list_partition_methods().size(), 3U);
}

TEST(Answer, says_how_long_a_step_takes_and_what_gets_done) {
  const Answer step = assess(fork_on(2), kApart, {}, {}, 111);
  EXPECT_EQ(step.latency(), 111'000);
  EXPECT_EQ(step.in_flight(), 1);
  EXPECT_DOUBLE_EQ(step.samples_per_second().value(), 1e6);
  EXPECT_FALSE(step.tokens_per_second());
  EXPECT_FALSE(step.utilisation()) << "nobody knows the FLOPs";
  EXPECT_FALSE(assess(fork_on(2), kApart).samples_per_second());
  // Two steps overlap: gpu0 computes 110 us of each.
  const Answer stream = assess(fork_on(2), kApart, {}, StreamPeriod{}, 110);
  EXPECT_EQ(stream.time(), 110'000);
  EXPECT_EQ(stream.in_flight(), 2);
  EXPECT_GE(stream.latency(), 111'000);
  EXPECT_DOUBLE_EQ(stream.samples_per_second().value(), 1e6);
}

TEST(Answer, knows_tokens_and_utilisation_of_models_that_say_them) {
  const Model model = read_model("zoo:bert-base:layers=1,batch=4,sequence=32");
  PlaceOptions options = with("single");
  options.samples = 4;
  const Answer answer = place(compile(model.graph, read_cluster("1xa100")), options);
  const double seconds = static_cast<double>(answer.time()) / 1e9;
  EXPECT_NEAR(answer.samples_per_second().value(), 4 / seconds, 1e-6 / seconds);
  EXPECT_NEAR(answer.tokens_per_second().value(), 128 / seconds, 1e-6 / seconds);
  EXPECT_GT(answer.utilisation().value(), 0);
  EXPECT_LT(answer.utilisation().value(), 1);
}

}  // namespace
}  // namespace emplace
