#include "run/profile.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/contention.h"
#include "support/error_text.h"
#include "support/shared_core.h"
#include "support/timed_graph.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A source, two ops and a view between them.
std::shared_ptr<const Graph> small_graph() {
  GraphBuilder builder("small");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {{.bytes = 400}})[0];
  OpSpec first{.name = "first", .type = "compute", .inputs = {x}};
  first.time_us = {{"cpu", Decimal{1, 0}}, {"p100", Decimal{9, 0}}};
  first.temp_bytes = 77;
  const TensorId y = builder.add(first, {{.bytes = 400}})[0];
  const TensorId z = builder.add({.name = "view", .type = "view", .inputs = {y}, .view = true},
                                 {{.bytes = 400}})[0];
  builder.add({.name = "second", .type = "compute", .inputs = {z}, .after = {"first"}},
              {{.bytes = 4}});
  return std::make_shared<const Graph>(std::move(builder).build());
}

// Of one kind, with a link that is slowed down and one that is not.
std::shared_ptr<const Cluster> small_cluster() {
  ClusterSpec spec = shared_core_spec(2, {.bandwidth = 5'000'000'000, .latency = 3000});
  LinkRule slow;
  slow.from = "cpu1";
  slow.to = "cpu0";
  slow.bandwidth = 1'000'000'000;
  slow.latency = 50'000;
  slow.throttled = true;
  spec.links.push_back(slow);
  return std::make_shared<const Cluster>(spec);
}

ProfilePhase phase_of(Nanoseconds step, Nanoseconds first, Nanoseconds second,
                      std::vector<Nanoseconds> busy, Nanoseconds reference) {
  ProfilePhase phase;
  phase.kinds.push_back({.step = step,
                         .ops = {0, first, 0, second},
                         .temporary = {0, first, 0, 0},
                         .busy_ops = std::move(busy)});
  phase.links = {{{1000, 2000}, {3000, 4000}}, {}};
  phase.reference = reference;
  return phase;
}

std::vector<ProfilePhase> three_phases() {
  return {phase_of(330, 100, 200, {0, 150, 0, 400}, 1000),
          phase_of(430, 300, 100, {0, 250, 0, 600}, 1250),
          phase_of(370, 200, 150, {0, 200, 0, 500}, 1100)};
}

Profile combined(std::vector<ProfilePhase> phases) {
  return Profiler(small_graph(), small_cluster(), {}).combine(phases);
}

Decimal time_of(const Graph& graph, const std::string& op, const std::string& name) {
  for (const MeasuredTime& time : graph.measured_times(*graph.find_op(op))) {
    if (graph.strings().get(time.device) == name) return time.microseconds;
  }
  return Decimal{-1, 0};
}

TEST(Profile, ops_take_the_median_of_the_phases) {
  const Profile profile = combined(three_phases());
  const Graph& graph = *profile.graph;
  EXPECT_DOUBLE_EQ(time_of(graph, "first", "cpu").to_double(), 0.2);
  EXPECT_DOUBLE_EQ(time_of(graph, "second", "cpu").to_double(), 0.15);
  EXPECT_DOUBLE_EQ(time_of(graph, "first", busy_name("cpu")).to_double(), 0.2);
  EXPECT_DOUBLE_EQ(time_of(graph, "second", busy_name("cpu")).to_double(), 0.5);
  EXPECT_DOUBLE_EQ(time_of(graph, "first", "p100").to_double(), 9) << "was there before";
  EXPECT_THAT(graph.measured_times(*graph.find_op("x")), SizeIs(0));
  EXPECT_THAT(graph.measured_times(*graph.find_op("view")), SizeIs(0));
  EXPECT_THAT(graph.measured_times(*graph.find_op("first")), SizeIs(3));
  EXPECT_THAT(graph.after(*graph.find_op("second")), ElementsAre(*graph.find_op("first")));
}

// (330 - 300) / 2, (430 - 400) / 2 and (370 - 350) / 2.
TEST(Profile, what_a_step_has_beside_its_ops_lies_between_them) {
  const Profile profile = combined(three_phases());
  ASSERT_THAT(profile.kinds, SizeIs(1));
  const KindProfile& kind = profile.kinds[0];
  EXPECT_EQ(kind.kind, "cpu");
  EXPECT_EQ(kind.device, "cpu0");
  EXPECT_EQ(kind.gap, 15);
  EXPECT_EQ(kind.ops, 350);
  EXPECT_EQ(kind.step.median, 370);
  EXPECT_DOUBLE_EQ(kind.busy_ratio, 700.0 / 350);
  for (const Device& device : profile.cluster.devices) EXPECT_EQ(device.gap, 15);
  EXPECT_DOUBLE_EQ(profile.drift, 1.25);
  EXPECT_EQ(profile.reference, 1100);
}

TEST(Profile, a_step_shorter_than_its_ops_leaves_no_gap) {
  const Profile profile = combined({phase_of(250, 100, 200, {}, 1000)});
  EXPECT_EQ(profile.kinds[0].gap, 0);
}

TEST(Profile, temporary_memory_is_the_most_of_any_phase_and_replaces_what_was_said) {
  const Profile profile = combined(three_phases());
  const Graph& graph = *profile.graph;
  EXPECT_EQ(graph.temp_bytes(*graph.find_op("first")), 300);
  EXPECT_EQ(graph.temp_bytes(*graph.find_op("second")), 0);
}

TEST(Profile, links_are_those_measured_unless_they_are_slowed_down) {
  const Profile profile = combined(three_phases());
  ASSERT_THAT(profile.links, SizeIs(2));
  EXPECT_TRUE(profile.links[0].measured);
  EXPECT_EQ(profile.cluster.links[0].latency, 1000);
  EXPECT_EQ(profile.cluster.links[0].bandwidth, 1'000'000'000);
  EXPECT_FALSE(profile.links[1].measured);
  EXPECT_EQ(profile.cluster.links[1].latency, 50'000);
  EXPECT_EQ(profile.cluster.links[1].bandwidth, 1'000'000'000);
  EXPECT_TRUE(profile.cluster.links[1].throttled);
}

TEST(Profile, without_busy_steps_has_no_such_times) {
  std::vector<ProfilePhase> phases = three_phases();
  phases[1].kinds[0].busy_ops.clear();
  const Profile profile = combined(phases);
  EXPECT_EQ(profile.kinds[0].busy_ratio, 0);
  EXPECT_THAT(profile.graph->measured_times(*profile.graph->find_op("first")), SizeIs(2));
}

TEST(Profile, each_kind_is_measured_on_its_first_device) {
  ClusterSpec spec = shared_core_spec(3);
  spec.kinds.push_back({.name = "cpu-other",
                        .peak_flops = {{"float32", 1e9}},
                        .memory_bandwidth = 1e9,
                        .memory = 1'000'000});
  spec.devices[1].kind = "cpu-other";
  const Profiler profiler(small_graph(), std::make_shared<const Cluster>(spec),
                          {.measure = {.steps = 7, .warm_up = 3}});
  EXPECT_THAT(profiler.kinds(), ElementsAre(std::pair<std::string, DeviceId>{"cpu", 0},
                                            std::pair<std::string, DeviceId>{"cpu-other", 1}));
  EXPECT_EQ(profiler.steps_of_phase(), 4 * 10) << "two kinds, all at once, and one that sends";
}

// Nothing is learned from steps that are scattered over links that are what the file says.
TEST(Profile, steps_are_not_scattered_over_links_that_are_slowed_down) {
  const Profiler profiler(small_graph(), shared_core_cluster(2, {.throttled = true}),
                          {.measure = {.steps = 7, .warm_up = 3}});
  EXPECT_EQ(profiler.steps_of_phase(), 2 * 10) << "one kind, and all at once";
}

#ifdef EMPLACE_LEARN

TEST(Profile, of_a_model_has_a_time_for_every_op) {
  const auto graph = std::make_shared<const Graph>(
      zoo::build_model("family:ptb:batch=2,nodes=4,hidden=8,sequence=3"));
  const auto cluster = shared_core_cluster(2);
  const Profiler profiler(graph, cluster, {.measure = {.steps = 2, .warm_up = 1}});
  int steps = 0;
  Laboratory laboratory(cluster, {}, [&] { ++steps; });
  const ProfilePhase phase = profiler.measure(laboratory, 0);
  EXPECT_EQ(steps, profiler.steps_of_phase());
  ASSERT_THAT(phase.kinds, SizeIs(1));
  EXPECT_THAT(phase.kinds[0].busy_ops, SizeIs(graph->num_ops()));
  ASSERT_THAT(phase.links, SizeIs(1));
  EXPECT_GT(phase.links[0].size(), 10U);
  EXPECT_GT(phase.reference, 0);
  const Profile profile = profiler.combine({phase});
  const Graph& measured = *profile.graph;
  ASSERT_EQ(measured.num_ops(), graph->num_ops());
  for (OpId op = 0; op < measured.num_ops(); ++op) {
    const bool timed = !measured.is_source(op) && !measured.is_view(op);
    EXPECT_EQ(measured.measured_times(op).size(), timed ? 2U : 0U) << measured.op_name(op);
  }
  // It can be profiled again, and placed.
  EXPECT_NO_THROW(compile(profile.graph, std::make_shared<const Cluster>(profile.cluster),
                          CostMode::kMeasured));
}

// Integers are sent as int64.
TEST(Profile, links_are_fitted_to_the_bytes_that_were_sent) {
  GraphBuilder builder("bytes");
  const TensorSpec spec{.shape = {1000}, .dtype = DType::kUInt8};
  TensorId last = builder.add({.name = "x", .type = "input"}, {spec})[0];
  for (int i = 0; i < 10; ++i) {
    OpSpec relu{.name = fmt::format("y{}", i), .type = "Relu", .inputs = {last}};
    last = builder.add(relu, {spec})[0];
  }
  const auto graph = std::make_shared<const Graph>(std::move(builder).build());
  const auto cluster = shared_core_cluster(2);
  const Profiler profiler(graph, cluster, {.measure = {.steps = 1, .warm_up = 0}});
  Laboratory laboratory(cluster);
  const ProfilePhase phase = profiler.measure(laboratory, 0);
  ASSERT_THAT(phase.links, SizeIs(1));
  const auto sent_within_a_step = [](Bytes bytes) {
    return [bytes](const LinkSample& sample) { return sample.bytes == bytes; };
  };
  const auto& samples = phase.links[0];
  EXPECT_GT(std::count_if(samples.begin(), samples.end(), sent_within_a_step(8000)), 0);
  EXPECT_EQ(std::count_if(samples.begin(), samples.end(), sent_within_a_step(1000)), 0);
}

#endif

// Phases come from a file.
TEST(Profiler, refuses_phases_that_do_not_fit_the_graph_and_the_cluster) {
  const Profiler profiler(small_graph(), small_cluster(), {});
  EXPECT_NO_THROW(profiler.check(three_phases()));
  const auto complaint = [&](const std::function<void(ProfilePhase&)>& change) {
    std::vector<ProfilePhase> phases = three_phases();
    change(phases[1]);
    return error_text([&] { profiler.check(phases); });
  };
  using Phase = ProfilePhase;
  EXPECT_EQ(complaint([](Phase& phase) { phase.kinds.clear(); }),
            "phase 2: kinds: has 0 entries; expected 1");
  EXPECT_THAT(complaint([](Phase& phase) { phase.kinds[0].ops.clear(); }), HasSubstr("ops_ns"));
  EXPECT_THAT(complaint([](Phase& phase) { phase.kinds[0].temporary.pop_back(); }),
              HasSubstr("temporary_bytes"));
  EXPECT_THAT(complaint([](Phase& phase) { phase.kinds[0].busy_ops.pop_back(); }),
              HasSubstr("busy_ops_ns"));
  EXPECT_THAT(complaint([](Phase& phase) { phase.links.pop_back(); }), HasSubstr("links"));
  EXPECT_THAT(complaint([](Phase& phase) { phase.kinds[0].ops[0] = -1; }), HasSubstr("has -1"));
  EXPECT_THAT(complaint([](Phase& phase) {
                phase.kinds[0].ops[0] = std::numeric_limits<Nanoseconds>::max();
              }),
              HasSubstr("ops_ns"));
  EXPECT_THAT(complaint([](Phase& phase) { phase.reference = -1; }), HasSubstr("reference_ns"));
  EXPECT_THAT(complaint([](Phase& phase) { phase.links[0][0].time = -1; }), HasSubstr("links"));
}

}  // namespace
}  // namespace emplace
