#include "run/batch_search.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/presets.h"

#include "run/larger_cluster.h"
#include "run/partition.h"
#include "run/portfolio.h"
#include "run/problem_request.h"
#include "run/sensitivity.h"
#include "support/error_text.h"
#include "support/fork.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Up to `limit` fits.
BatchSearch search_to(std::int64_t limit, const BatchRange& range = {}) {
  return find_largest_batch(range, [&](std::int64_t batch) {
    return BatchProbe{batch, batch <= limit, ""};
  });
}

std::vector<std::int64_t> batches(const BatchSearch& search) {
  std::vector<std::int64_t> tried;
  for (const BatchProbe& probe : search.tried) tried.push_back(probe.batch);
  return tried;
}

TEST(BatchSearch, doubles_and_then_halves_what_is_between) {
  EXPECT_THAT(batches(search_to(5)), ElementsAre(1, 2, 4, 8, 6, 5));
  for (std::int64_t limit = 1; limit < 70; ++limit) {
    const BatchSearch search = search_to(limit);
    EXPECT_EQ(search.largest, limit);
    EXPECT_EQ(search.best()->batch, limit);
  }
}

TEST(BatchSearch, stays_within_the_range) {
  EXPECT_EQ(search_to(1000, {8, 100}).largest, 100);
  EXPECT_THAT(batches(search_to(1000, {8, 20})), ElementsAre(8, 16, 20));
  EXPECT_EQ(search_to(17, {8, 100}).largest, 17);
  const BatchSearch none = search_to(7, {8, 100});
  EXPECT_EQ(none.largest, std::nullopt);
  EXPECT_EQ(none.best(), nullptr);
  EXPECT_EQ(none.tried.size(), 1U);
}

TEST(BatchRange, is_max_or_two_numbers) {
  EXPECT_EQ(BatchRange::parse("max")->low, 1);
  EXPECT_EQ(BatchRange::parse("8..512")->low, 8);
  EXPECT_EQ(BatchRange::parse("8..512")->high, 512);
  EXPECT_FALSE(BatchRange::parse("64"));
  EXPECT_THAT(error_text([] { BatchRange::parse("9..8"); }), HasSubstr("the smaller number first"));
  EXPECT_THAT(error_text([] { BatchRange::parse("a..8"); }), HasSubstr("batch, from"));
}

TEST(BatchProbe, fits_on_one_device_or_split_or_not_at_all) {
  Budget budget;
  budget.evaluations = 50;
  const auto probe = [&](int devices, Bytes memory) {
    return probe_batch(
        3, SubsetProblems(compile_timed(fork_graph(3000), gpu_cluster(devices, memory)), {}),
        budget);
  };
  const BatchProbe one = probe(2, 20'000);
  EXPECT_TRUE(one.fits);
  EXPECT_EQ(one.batch, 3);
  EXPECT_EQ(one.how, "on gpu0 alone");
  EXPECT_THAT(one.placement, ElementsAre(0, 0, 0, 0));
  const BatchProbe two = probe(2, 6500);
  EXPECT_TRUE(two.fits);
  EXPECT_THAT(two.how, HasSubstr("placed by "));
  const BatchProbe none = probe(2, 2000);
  EXPECT_FALSE(none.fits);
  EXPECT_THAT(none.how, HasSubstr("proven: "));
}

TEST(BatchProbe, asks_the_placers_that_were_given) {
  Budget budget;
  budget.evaluations = 50;
  const SubsetProblems problems(compile_timed(fork_graph(3000), gpu_cluster(2, 6500)), {});
  EXPECT_TRUE(probe_batch(3, problems, budget).fits);
  EXPECT_FALSE(probe_batch(3, problems, budget, make_runs("single", "own")).fits);
  const BatchProbe split = probe_batch(3, problems, budget, make_runs("heft", "own"));
  EXPECT_TRUE(split.fits);
  EXPECT_EQ(split.how, "placed by heft");
}

// A CPU's memory is no reason for a larger batch, unless it is to take part.
TEST(BatchProbe, does_without_cpus_that_were_not_asked_for) {
  ProblemRequest request{.model = "zoo:alexnet", .cluster = "1xp100@3GiB+cpu"};
  request.batch = 4096;
  const auto problem = load_problem(request);
  Budget budget;
  budget.evaluations = 50;
  EXPECT_TRUE(probe_batch(4096, SubsetProblems(problem, {}, 0, {}, CpuUse::kAlways), budget).fits);
  EXPECT_FALSE(probe_batch(4096, SubsetProblems(problem, {}, 0, {}, CpuUse::kNever), budget).fits);
}

// What a model needs, the search finds: one more does not fit.
TEST(BatchProbe, finds_the_largest_batch_of_a_model) {
  ProblemRequest request{.model = "zoo:alexnet", .cluster = "1xp100@3GiB"};
  Budget budget;
  budget.evaluations = 50;
  const BatchSearch search = find_largest_batch({}, [&](std::int64_t batch) {
    request.batch = batch;
    return probe_batch(batch, SubsetProblems(load_problem(request), {}), budget);
  });
  ASSERT_TRUE(search.largest);
  const auto peak = [&](std::int64_t batch) {
    request.batch = batch;
    const auto problem = load_problem(request);
    return Simulator(problem).run(Placement(problem->num_ops(), 0), {}).devices[0].peak;
  };
  EXPECT_LE(peak(*search.largest), Bytes{3} << 30);
  EXPECT_GT(peak(*search.largest + 1), Bytes{3} << 30);
}

Sensitivities of_fork(const Placement& placement, ClusterSpec cluster) {
  const auto simulator = std::make_shared<const Simulator>(fork_on(std::move(cluster)));
  Budget budget;
  budget.evaluations = 200;
  return sensitivities(Assessor(simulator, {}).assess(placement, {}), budget);
}

const Sensitivity& of(const std::string& resource, const Sensitivities& all) {
  return *std::find_if(all.list.begin(), all.list.end(),
                       [&](const Sensitivity& one) { return one.resource == resource; });
}

TEST(Sensitivities, say_what_each_resource_would_bring) {
  const Sensitivities all = of_fork({0, 0, 1, 1}, gpu_cluster(2));
  EXPECT_EQ(all.now.step, kForkOnTwo);
  ASSERT_EQ(all.list.size(), 5U);
  EXPECT_EQ(all.list[0].resource, "speed") << "times are measured";
  EXPECT_EQ(all.list[0].value.step, 56'000) << "110 us of work in half the time, and a transfer";
  EXPECT_EQ(all.list[1].resource, "bandwidth");
  EXPECT_EQ(all.list[1].value.step, 110'500);
  EXPECT_EQ(all.list[2].value.step, kForkOnTwo);
  EXPECT_EQ(of("devices", all).value.step, kForkOnTwo) << "two branches have no use for a third";
  EXPECT_EQ(of("devices", all).what, "one more gpu");
}

TEST(Sensitivities, of_one_device_say_what_another_would_bring) {
  const Sensitivities all = of_fork({0, 0, 0, 0}, gpu_cluster(1));
  EXPECT_EQ(all.now.step, kForkOnOne);
  EXPECT_EQ(of("devices", all).factor, 2);
}

TEST(Sensitivities, of_a_placement_search_for_no_other) {
  const auto simulator = std::make_shared<const Simulator>(fork_on(gpu_cluster(2)));
  const Sensitivities all =
      sensitivities_of_placement(Assessor(simulator, {}).assess({0, 0, 0, 0}, {}));
  EXPECT_EQ(all.now.step, kForkOnOne);
  EXPECT_EQ(all.list[0].resource, "speed");
  EXPECT_EQ(all.list[0].value.step, kForkOnOne / 2);
  EXPECT_EQ(of("bandwidth", all).value.step, kForkOnOne) << "nothing is sent";
  EXPECT_EQ(all.list.size(), 4U) << "a device more would be of no use to it";
}

TEST(LargerCluster, has_a_device_like_the_last_accelerator_and_its_links) {
  const auto larger = with_one_more_device(*read_cluster("2xa100-nvlink+cpu"));
  ASSERT_TRUE(larger);
  ASSERT_EQ(larger->num_devices(), 4U);
  const DeviceId added = 3;
  EXPECT_EQ(larger->device(added).kind, "a100");
  EXPECT_NE(larger->device(added).name, larger->device(1).name);
  for (DeviceId other = 0; other < added; ++other) {
    ASSERT_NE(larger->link(added, other), nullptr) << other;
    ASSERT_NE(larger->link(other, added), nullptr) << other;
  }
  EXPECT_EQ(larger->link(added, 1)->bandwidth, larger->link(0, 1)->bandwidth);
  EXPECT_EQ(larger->link(added, 2)->bandwidth, larger->link(0, 2)->bandwidth) << "to the CPU";
}

// Two GPUs behind one bus, said by their names: a third one hangs on the same bus.
TEST(LargerCluster, shares_the_named_channels_of_its_twin) {
  const std::vector<DeviceDescription> devices{{"cpu", "cpu"}, {"gpu0", "p100"}, {"gpu1", "p100"}};
  std::vector<LinkRule> links;
  const auto add = [&](const std::string& from, const std::string& to, const char* channel) {
    links.push_back({.from = from, .to = to, .bandwidth = 1'000'000'000, .channel = channel});
  };
  for (const std::string gpu : {"gpu0", "gpu1"}) {
    add("cpu", gpu, "bus");
    add(gpu, "cpu", "out");
  }
  add("gpu0", "gpu1", "bridge");
  add("gpu1", "gpu0", "pair");
  const auto larger = with_one_more_device(*build_cluster("by name", devices, links));
  ASSERT_TRUE(larger);
  const DeviceId added = 3;
  const auto channel = [&](DeviceId from, DeviceId to) {
    const Link* link = larger->link(from, to);
    return link == nullptr ? "none" : larger->channel_name(link->channel);
  };
  EXPECT_EQ(channel(0, added), "bus");
  EXPECT_EQ(larger->link(0, added)->channel, larger->link(0, 1)->channel);
  EXPECT_EQ(channel(added, 0), larger->device(added).name + "->*");
  // Its twin is gpu1, whose own link to gpu0 is the pair's, and from there the bridge.
  EXPECT_EQ(channel(added, 1), larger->device(added).name + "->gpu0");
  EXPECT_EQ(channel(0, 1), "bus");
  EXPECT_EQ(channel(1, added), "bridge");
}

TEST(Sensitivities, do_not_take_a_better_search_for_better_hardware) {
  const Sensitivities all = of_fork({0, 0, 0, 0}, gpu_cluster(2));
  EXPECT_EQ(all.now.step, kForkOnTwo) << "which the searches find on the way";
}

TEST(Sensitivities, of_memory_may_make_it_fit) {
  const Sensitivities all = of_fork({0, 0, 0, 0}, gpu_cluster(1, 2000));
  EXPECT_FALSE(all.now.fits());
  EXPECT_EQ(all.list[0].resource, "memory");
  EXPECT_TRUE(all.list[0].value.fits());
}

// More memory makes the split fit that the search finds; without, it is still nearest.
TEST(Sensitivities, try_every_placement_that_is_found_on_all_hardware) {
  const auto problem = compile_timed(fork_graph(3000), gpu_cluster(2, 3250));
  ASSERT_TRUE(SubsetProblems(problem, {}).why_nothing_fits()) << "so other changes do not search";
  const auto simulator = std::make_shared<const Simulator>(problem);
  Budget budget;
  budget.evaluations = 200;
  const Assessment answer = Assessor(simulator, {}).assess({0, 0, 0, 0}, {});
  const Sensitivities all = sensitivities(answer, budget);
  EXPECT_TRUE(all.list[0].value.fits());
  EXPECT_FALSE(all.now.fits());
  for (const Sensitivity& one : all.list) {
    EXPECT_LE(one.value.overflow, all.now.overflow) << one.resource;
    EXPECT_FALSE(all.now < one.value) << one.resource;
  }
}

}  // namespace
}  // namespace emplace
