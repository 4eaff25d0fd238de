#include "report/explanation.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/assessment_report.h"
#include "report/shortfall.h"
#include "report/whole_modules.h"
#include "support/fork.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"
#include "support/with_cpu.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::json;

const Placement kApart{0, 0, 1, 1};  // the left branch on gpu0, the rest on gpu1

Assessment assess_fork(const Placement& placement, const Objective& objective = {}, int devices = 2,
                       Bytes memory = kUnlimited) {
  const auto simulator = std::make_shared<const Simulator>(fork_on(gpu_cluster(devices, memory)));
  return Assessor(simulator, objective).assess(placement, {});
}

RunResult tried(const std::string& placer, const Placement& placement, Nanoseconds step,
                Bytes overflow = 0) {
  RunResult result;
  result.run.placer = MethodSpec::parse(placer);
  result.result.placement = placement;
  result.evaluation = {step, overflow};
  return result;
}

TEST(Explanation, of_a_step_is_the_chain_that_ends_last) {
  const Explanation explanation = explain(assess_fork(kApart));
  EXPECT_EQ(explanation.chain.compute, 110'000);
  EXPECT_EQ(explanation.chain.transfer, 1'000);
  EXPECT_EQ(explanation.chain.device_wait, 0);
  ASSERT_EQ(explanation.chain.segments.size(), 3U);
  EXPECT_EQ(explanation.chain.segments[0].op, 1U) << "left.mm";
  EXPECT_EQ(explanation.chain.segments[2].op, 3U) << "join";
  EXPECT_THAT(explanation.used, ElementsAre(0, 1));
  EXPECT_EQ(explanation.loads[0].name, "gpu1");
  EXPECT_EQ(explanation.loads[0].time, 110'000);
  EXPECT_NEAR(explanation.contents[1].work, 110.0 / 210, 1e-12);
  EXPECT_EQ(explanation.contents[0].resident, 1000) << "the weight";
  ASSERT_TRUE(explanation.fitting_device);
  EXPECT_EQ(explanation.fitting_device->value.step, kForkOnOne);
  EXPECT_FALSE(explanation.best_split);
}

TEST(Explanation, best_split_is_the_best_of_more_than_one_device_that_was_tried) {
  const Assessment one = assess_fork({0, 0, 0, 0});
  const Explanation explanation =
      explain(one, {tried("single", {1, 1, 1, 1}, 1), tried("metis", kApart, 120'000),
                    tried("heft", kApart, 111'000), tried("expert", kApart, 100'000, 5)});
  ASSERT_TRUE(explanation.best_split);
  EXPECT_EQ(explanation.best_split->placer, "heft") << "the fastest that fits";
}

// An op on a GPU, the other on a CPU beside it.
std::string explain_beside_cpu(Bytes memory, bool executed) {
  const auto ops = ops_with_cpu({100, 1000}, memory);
  ClusterSpec cluster = ops->cluster().spec();
  if (executed) {
    cluster.devices[0].runs_on = "cuda:0";
    cluster.devices[2].runs_on = "cores 0";
  }
  const auto problem = compile(std::shared_ptr<const Graph>(ops, &ops->graph()),
                               std::make_shared<const Cluster>(cluster));
  const Assessment apart =
      Assessor(std::make_shared<const Simulator>(problem), {}).assess({0, 2}, {});
  return to_text(explain(apart), apart);
}

TEST(Explanation, says_what_is_not_counted_of_cpus_that_start_kernels) {
  EXPECT_THAT(explain_beside_cpu(kUnlimited, false), HasSubstr("kernels, which is not counted"));
  EXPECT_THAT(explain_beside_cpu(kUnlimited, true), Not(HasSubstr("is not counted")));
}

TEST(Explanation, says_what_cpus_gain_and_lose_beside_accelerators_that_could_hold_all) {
  EXPECT_THAT(explain_beside_cpu(kUnlimited, true),
              HasSubstr("gained at most 4 %, and sometimes lost up to 11 %"));
  EXPECT_THAT(explain_beside_cpu(1'000'000, false),
              HasSubstr("gained at most 4 %, and sometimes lost up to 11 %"));
  EXPECT_THAT(explain_beside_cpu(400, true), Not(HasSubstr("gained")));
}

// Nineteen ops that need nothing of each other, ten of them on one device.
TEST(Explanation, says_when_all_devices_are_busy) {
  TimedGraph graph;
  Placement placement;
  for (int i = 0; i < 19; ++i) {
    graph.op(fmt::format("op{}", i), 10, {});
    placement.push_back(static_cast<DeviceId>(i % 2));
  }
  const auto simulator =
      std::make_shared<const Simulator>(compile_timed(graph.build(), gpu_cluster(2)));
  const Assessment answer = Assessor(simulator, {}).assess(placement, {});
  ASSERT_FALSE(answer.optimal());
  EXPECT_THAT(to_text(explain(answer), answer),
              HasSubstr("all devices work at least 90 % of the step: faster ones, or more of them, "
                        "would help"));
}

TEST(Explanation, as_text_names_what_limits_what_is_where_and_one_device) {
  const Assessment apart = assess_fork(kApart, {}, 3);
  const std::string text = to_text(explain(apart), apart);
  EXPECT_THAT(text, HasSubstr("What limits the step"));
  EXPECT_THAT(text, HasSubstr("the chain of ops that ends last: 99 % computing (110.0 us) and 1 %"
                              " in transfers (1.000 us)"));
  EXPECT_THAT(text, HasSubstr("gpu1 works 99 % of the step"));
  EXPECT_THAT(text, HasSubstr("left.mm on gpu0 (100.0 us)"));
  EXPECT_THAT(text, HasSubstr("not used: gpu2"));
  EXPECT_THAT(text, HasSubstr("gpu0 alone would take 210.0 us, 1.89 times as long"));
  EXPECT_THAT(text, Not(HasSubstr("What is short")));
}

TEST(Explanation, names_the_modules_that_are_cut) {
  const Assessment cut = assess_fork({0, 1, 1, 1});
  const Explanation explanation = explain(cut);
  ASSERT_EQ(explanation.cut.size(), 1U);
  EXPECT_EQ(explanation.cut[0].name, "left") << "its weight is not with its op";
  EXPECT_THAT(explanation.cut[0].devices, ElementsAre(0, 1));
  EXPECT_THAT(to_text(explanation, cut),
              HasSubstr("cut between devices: 1 of 3 modules: left (gpu0, gpu1)"));
  EXPECT_EQ(Json(to_json(explanation, cut))["cut_modules"],
            (Json{{{"module", "left"}, {"devices", {"gpu0", "gpu1"}}}}));
  const Assessment apart = assess_fork(kApart);
  EXPECT_THAT(to_text(explain(apart), apart), HasSubstr("every module is on one device"));
}

TEST(WholeModules, say_what_was_found_and_what_is_certain) {
  WholeModules whole{.whole = {104'000'000, 0},
                     .op_by_op = Evaluation{100'000'000, 0},
                     .placer = "auto",
                     .seconds = 3,
                     .bound = {80'000'000, "a proof"}};
  EXPECT_EQ(
      describe(whole),
      "keeping modules whole costs 4.0 % against 100.0 ms op by op, which auto found in 3.0 s; "
      "no placement op by op beats 80.00 ms, so it costs at most 30 %");
  whole.op_by_op = whole.whole;
  EXPECT_THAT(describe(whole), HasSubstr("costs nothing that was seen"));
  whole.op_by_op.reset();
  EXPECT_THAT(describe(whole),
              AllOf(HasSubstr("was not compared"), HasSubstr("costs at most 30 %")));
  whole.bound.step = whole.whole.step;
  EXPECT_THAT(describe(whole), HasSubstr("costs nothing: no placement op by op is faster"));
  whole.whole.overflow = 1;
  whole.op_by_op = Evaluation{100'000'000, 0};
  EXPECT_THAT(describe(whole), HasSubstr("op by op it fits and takes 100.0 ms"));
  EXPECT_FALSE(whole.cost());
}

TEST(Explanation, as_text_says_that_splitting_would_pay) {
  const Assessment one = assess_fork({0, 0, 0, 0});
  EXPECT_THAT(to_text(explain(one, {tried("expert", kApart, 111'000)}), one),
              HasSubstr("this is one device, but a split fits and is faster: expert takes"
                        " 111.0 us"));
  EXPECT_THAT(to_text(explain(one, {tried("hash", kApart, 900'000)}), one),
              HasSubstr("the best split that was tried, by hash, takes 900.0 us"));
}

TEST(Explanation, of_a_stream_is_its_largest_load) {
  const Assessment full = assess_fork(kApart, StreamPeriod{});
  const std::string text = to_text(explain(full), full);
  EXPECT_THAT(text, HasSubstr("What sets the period"));
  EXPECT_THAT(text, HasSubstr("device gpu1 sets it: 110.0 us of work a step"));
  EXPECT_THAT(text, HasSubstr("next is device gpu0 with 100.0 us (91 % of the period)"));
  const auto channels = [](const Explanation& explanation) {
    return std::count_if(explanation.loads.begin(), explanation.loads.end(),
                         [](const Load& load) { return !load.is_device; });
  };
  EXPECT_GT(channels(explain(full)), 0);
  EXPECT_EQ(channels(explain(assess_fork(kApart, StreamPeriod{Overlap::kNone}))), 0)
      << "devices pay";
}

TEST(Explanation, of_a_stream_says_how_many_steps_are_in_flight_and_for_how_long) {
  const Assessment one = assess_fork({0, 0, 0, 0}, StreamPeriod{});
  EXPECT_THAT(to_text(one),
              HasSubstr("period    210.0 us per step of a stream, one after the other"));
  const Json alone = Json::parse(to_json(one, nullptr, nullptr))["stream"];
  EXPECT_EQ(alone, (Json{{"simulated", true},
                         {"in_flight", 1},
                         {"latency_ns", 210'000},
                         {"load_ns", 210'000},
                         {"memory_limited", false}}));
  const Assessment two = assess_fork(kApart, StreamPeriod{});
  ASSERT_GT(two.throughput->in_flight, 1);
  EXPECT_THAT(to_text(two), HasSubstr(fmt::format("per step of a stream, {} in flight, each for ",
                                                  two.throughput->in_flight)));
  EXPECT_THAT(to_text(explain(two), two),
              HasSubstr("with fewer than 2 steps in flight it would wait"));
  const Json json = Json::parse(to_json(two, nullptr, nullptr));
  EXPECT_EQ(json["stream"]["in_flight"], two.throughput->in_flight);
  EXPECT_EQ(json["devices"][0]["peak_bytes"], two.throughput->memory[0]);
  const Assessment loads = assess_fork(kApart, StreamPeriod{Overlap::kNone});
  EXPECT_EQ(Json::parse(to_json(loads, nullptr, nullptr))["stream"], (Json{{"simulated", false}}));
  EXPECT_THAT(to_text(explain(loads), loads), HasSubstr("counts as alive at once"));
}

// A trace shows the steps that overlap.
TEST(AssessmentReport, traces_the_first_steps_of_a_stream) {
  const Assessment two = assess_fork(kApart, StreamPeriod{});
  const Json trace = Json::parse(trace_json(two));
  std::set<int> steps;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") steps.insert(event["args"]["step"].get<int>());
  }
  EXPECT_EQ(steps.size(), 2U * static_cast<std::size_t>(two.throughput->in_flight) + 4);
}

// Viewers show nothing sensible where two spans of one track overlap.
TEST(AssessmentReport, traces_of_unlimited_channels_have_tracks_enough) {
  bool several = false;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng);
    const Placement placement = random_placement(*problem, rng);
    const Assessor assessor(std::make_shared<const Simulator>(problem), {});
    const Json trace = Json::parse(trace_json(assessor.assess(placement, {})));
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> spans;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] != "X") continue;
      several = several || (event["pid"] == 2 &&
                            event["tid"].get<std::uint32_t>() >= problem->cluster().num_channels());
      const double start = event["ts"].get<double>();
      spans[{event["pid"], event["tid"]}].emplace_back(start, start + event["dur"].get<double>());
    }
    for (auto& [track, list] : spans) {
      std::sort(list.begin(), list.end());
      for (std::size_t i = 1; i < list.size(); ++i) {
        EXPECT_LE(list[i - 1].second, list[i].first + 1e-6) << seed << " track " << track.second;
      }
    }
  }
  EXPECT_TRUE(several) << "no channel carried two at once, so nothing was shown";
}

TEST(Explanation, of_a_stream_of_training_steps_says_how_old_parameters_are) {
  TimedGraph graph;
  const TensorId weight = graph.parameter("weight");
  const TensorId result = graph.op("forward", 100, {weight});
  const TensorId gradient = graph.backward("backward", 100, {result});
  graph.update("update", 10, {weight, gradient});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const Assessor assessor(std::make_shared<const Simulator>(problem), StreamPeriod{});
  const Assessment one = assessor.assess({0, 0, 0, 0}, {});
  EXPECT_THAT(to_text(explain(one), one), HasSubstr("each begins with all updates made"));
  const Assessment two = assessor.assess({0, 1, 0, 0}, {});
  ASSERT_EQ(two.throughput->in_flight, 2);
  const std::string text = to_text(explain(two), two);
  EXPECT_THAT(text, HasSubstr("up to 1 update old"));
  EXPECT_THAT(text, HasSubstr("micro-batches"));
  EXPECT_EQ(Json::parse(to_json(two, nullptr, nullptr))["stream"]["updates_behind"], 1);
}

TEST(Explanation, as_json_is_the_object_of_the_format) {
  const Assessment apart = assess_fork(kApart);
  const Json json = to_json(explain(apart, {tried("heft", kApart, 111'000)}), apart);
  EXPECT_EQ(json["chain"]["compute_ns"], 110'000);
  EXPECT_EQ(json["chain"]["segments"], 3);
  const Json& transfer = json["chain"]["longest"][1];
  EXPECT_EQ(transfer["kind"], "transfer");
  EXPECT_EQ(transfer["transfer"]["producer"], "left.mm");
  EXPECT_EQ(transfer["transfer"]["from"], "gpu0");
  EXPECT_EQ(transfer["transfer"]["bytes"], 1000);
  EXPECT_EQ(json["loads"][0], (Json{{"kind", "device"}, {"name", "gpu1"}, {"load_ns", 110'000}}));
  EXPECT_EQ(json["contents"][0]["device"], "gpu0");
  EXPECT_EQ(json["contents"][0]["modules"][0]["first"], "left");
  EXPECT_EQ(json["fitting_device"]["step_ns"], kForkOnOne);
  EXPECT_EQ(json["best_split"]["placer"], "heft");
}

TEST(AssessmentReport, is_the_object_of_the_format) {
  const Assessment apart = assess_fork(kApart);
  const Json json = Json::parse(to_json(apart));
  EXPECT_EQ(json["step_ns"], kForkOnTwo);
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["lower_bound_ns"], kForkBound);
  EXPECT_EQ(json["optimal"], false);
  EXPECT_NEAR(json["gap"].get<double>(), 1.0 / 110, 1e-12);
  EXPECT_EQ(json["devices"][1]["busy_ns"], 110'000);
  EXPECT_EQ(json["devices"][1]["capacity_bytes"], nullptr) << "no limit";
  EXPECT_EQ(json["transfer_bytes"], 1000);
  EXPECT_FALSE(json.contains("placer"));
  EXPECT_FALSE(json.contains("explanation"));
  const RunResult run = tried("heft(insertion=false)", kApart, kForkOnTwo);
  const Json found = Json::parse(to_json(apart, &run));
  EXPECT_EQ(found["placer"], "heft(insertion=false)");
  EXPECT_EQ(found["seed"], 1);
}

TEST(AssessmentReport, as_text_says_how_good_it_is) {
  EXPECT_THAT(to_text(assess_fork(kApart)),
              AllOf(HasSubstr("step time 111.0 us"), HasSubstr("beats 110.0 us"),
                    HasSubstr("within 1 % of the best possible placement"), HasSubstr("gpu1")));
  Assessment best = assess_fork(kApart);
  best.bound = {best.time(), "a proof"};
  best.most_devices = 2;
  EXPECT_THAT(to_text(best),
              HasSubstr("proven optimal: no placement on at most 2 devices that fits beats"
                        " 111.0 us (a proof)"));
  EXPECT_THAT(to_text(assess_fork({0, 0, 0, 0})), HasSubstr("no transfers between devices"));
  EXPECT_THAT(to_text(assess_fork(kApart, StreamPeriod{})), HasSubstr("period    110.0 us"));
}

TEST(AssessmentReport, describes_the_problem) {
  EXPECT_EQ(describe_problem(*fork_on(gpu_cluster(2))),
            "fork: 4 ops (3 take time), 4 tensors, 1000 B of parameters and state\n"
            "on test cluster (2 devices), op times all measured\n");
  EXPECT_THAT(describe_problem(*fork_on(gpu_cluster(1))), HasSubstr("(1 device), "));
}

TEST(Shortfall, is_nothing_where_all_fits) {
  EXPECT_THAT(describe_shortfall(assess_fork(kApart)), IsEmpty());
}

TEST(Shortfall, says_what_is_short_where_and_what_would_help) {
  const Assessment tight = assess_fork({0, 0, 0, 0}, {}, 2, 2500);
  ASSERT_FALSE(tight.fits());
  ASSERT_EQ(tight.used(0), 3004);
  EXPECT_EQ(describe_shortfall(tight),
            " does not fit: 'gpu0' needs 2.9 KiB of its 2.4 KiB, 504 B short\n");
  const std::string advice = advise_on_shortfall(explain(tight), tight);
  EXPECT_THAT(advice, HasSubstr("needs 2.9 KiB; all devices together have 4.9 KiB"));
  EXPECT_THAT(advice, HasSubstr("it would fit with 1.21 times the memory on every device"));
  EXPECT_THAT(advice, HasSubstr("a smaller batch would help"));
  EXPECT_THAT(advice, Not(HasSubstr("recomputing")));
  const std::string text = to_text(explain(tight), tight);
  EXPECT_THAT(text, AllOf(HasSubstr("What is short"), HasSubstr("504 B short")));
}

TEST(Shortfall, of_parameters_asks_for_more_devices) {
  const auto simulator =
      std::make_shared<const Simulator>(compile_timed(fork_graph(3000), gpu_cluster(1, 2000)));
  const Assessment assessment = Assessor(simulator, StepTime{}).assess(Placement(4, 0), {});
  const std::string advice = advise_on_shortfall(explain(assessment), assessment);
  EXPECT_THAT(advice, HasSubstr("devices of kind gpu instead of 1"));
  EXPECT_THAT(advice, Not(HasSubstr("a smaller batch")));
}

TEST(Shortfall, of_a_training_step_may_be_helped_by_recomputation) {
  TimedGraph graph;
  const TensorId weight = graph.parameter("w", 100);
  const TensorId a = graph.op("a", 10, {weight}, 5000);
  graph.backward("b", 10, {a});
  const auto simulator =
      std::make_shared<const Simulator>(compile_timed(graph.build(), gpu_cluster(1, 3000)));
  const Assessment assessment = Assessor(simulator, StepTime{}).assess(Placement(3, 0), {});
  ASSERT_FALSE(assessment.fits());
  const auto advice = [&](bool could_recompute) {
    return advise_on_shortfall(explain(assessment, {}, could_recompute), assessment);
  };
  EXPECT_THAT(advice(true), HasSubstr("or recomputing activations"));
  EXPECT_THAT(advice(false), Not(HasSubstr("recomputing")));
}

}  // namespace
}  // namespace emplace
