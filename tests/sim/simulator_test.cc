// The product against the reference on random problems, and docs/simulator.md's rules and worked
// examples one by one.
#include "sim/simulator.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "graph/graph_builder.h"

#include "sim/program.h"

#include "support/random_problem.h"
#include "support/reference_simulator.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

// tensor, from, destinations, channel, queued, start, finish
using FlatTransfer = std::tuple<TensorId, DeviceId, std::vector<DeviceId>, ChannelId, Nanoseconds,
                                Nanoseconds, Nanoseconds>;

std::vector<FlatTransfer> flatten(const std::vector<reference::Sending>& sendings) {
  std::vector<FlatTransfer> result;
  for (const reference::Sending& s : sendings) {
    const ChannelId channel = s.length == 0 ? kNoChannel : s.channel;
    result.emplace_back(s.tensor, s.from, s.to, channel, s.queued, s.start, s.finish);
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<FlatTransfer> flatten(const std::vector<Transfer>& transfers) {
  std::vector<FlatTransfer> result;
  for (std::size_t i = 0; i < transfers.size();) {
    const Transfer& t = transfers[i];
    std::vector<DeviceId> to{t.to};
    for (++i; i < transfers.size() && transfers[i].shared; ++i) to.push_back(transfers[i].to);
    std::sort(to.begin(), to.end());
    result.emplace_back(t.tensor, t.from, to, t.channel, t.queued, t.start, t.finish);
  }
  std::sort(result.begin(), result.end());
  return result;
}

// An entry that is shared repeats all but the destination of the one before it.
std::string malformed(const std::vector<Transfer>& transfers) {
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (i == 0) {
      if (transfers[i].shared) return "the first transfer is shared";
      continue;
    }
    const Transfer& a = transfers[i - 1];
    const Transfer& b = transfers[i];
    if (b.queued < a.queued) return fmt::format("transfer {} was queued before {}", i, i - 1);
    if (!b.shared) continue;
    const auto key = [](const Transfer& t) {
      return std::tie(t.tensor, t.from, t.channel, t.queued, t.start, t.finish);
    };
    if (key(a) != key(b)) return fmt::format("shared transfer {} differs from {}", i, i - 1);
  }
  return "";
}

std::string compare_devices(const Timeline& timeline, const reference::Run& run,
                            const Cluster& cluster) {
  if (timeline.devices.size() != run.peaks.size()) return "number of devices";
  for (DeviceId id = 0; id < timeline.devices.size(); ++id) {
    const DeviceUse& use = timeline.devices[id];
    if (use.busy != run.device_busy[id] || use.peak != run.peaks[id] ||
        use.capacity != cluster.device(id).memory) {
      return fmt::format("device {}: busy {} peak {}; expected busy {} peak {}", id, use.busy,
                         use.peak, run.device_busy[id], run.peaks[id]);
    }
  }
  return "";
}

std::string compare_channels(const Timeline& timeline, const reference::Run& run) {
  if (timeline.channels.size() != run.channels.size()) return "number of channels";
  for (std::size_t id = 0; id < run.channels.size(); ++id) {
    const ChannelUse& use = timeline.channels[id];
    const reference::ChannelTotals& expected = run.channels[id];
    if (use.busy != expected.busy || use.bytes != expected.bytes ||
        use.transfers != expected.sendings) {
      return fmt::format("channel {}: busy {} bytes {} transfers {}; expected {} {} {}", id,
                         use.busy, use.bytes, use.transfers, expected.busy, expected.bytes,
                         expected.sendings);
    }
  }
  return "";
}

std::string compare_transfers(const Timeline& timeline, const reference::Run& run,
                              const Graph& graph) {
  if (const std::string text = malformed(timeline.transfers); !text.empty()) return text;
  const auto actual = flatten(timeline.transfers);
  const auto expected = flatten(run.sendings);
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    if (actual[i] != expected[i]) {
      return fmt::format("transfer {}; expected {}", actual[i], expected[i]);
    }
  }
  if (actual.size() != expected.size() ||
      timeline.num_transfers != static_cast<std::int64_t>(expected.size())) {
    return fmt::format("{} transfers, said to be {}; expected {}", actual.size(),
                       timeline.num_transfers, expected.size());
  }
  Bytes bytes = 0;
  for (const reference::Sending& sending : run.sendings) bytes += graph.bytes(sending.tensor);
  if (timeline.transfer_bytes != bytes) {
    return fmt::format("{} bytes sent; expected {}", timeline.transfer_bytes, bytes);
  }
  return "";
}

// Empty when every field of the timeline is what the reference says.
std::string difference(const Timeline& timeline, const reference::Run& run,
                       const Problem& problem) {
  if (timeline.ops.size() != run.ops.size()) return "number of ops";
  for (OpId op = 0; op < run.ops.size(); ++op) {
    const OpSpan& span = timeline.ops[op];
    if (span.start != run.ops[op].start || span.finish != run.ops[op].finish) {
      return fmt::format("op{}: {} to {}; expected {} to {}", op, span.start, span.finish,
                         run.ops[op].start, run.ops[op].finish);
    }
  }
  if (timeline.step != run.step)
    return fmt::format("step {}; expected {}", timeline.step, run.step);
  for (const std::string& text :
       {compare_transfers(timeline, run, problem.graph()),
        compare_devices(timeline, run, problem.cluster()), compare_channels(timeline, run)}) {
    if (!text.empty()) return text;
  }
  return "";
}

Bytes overflow_of(const std::vector<Bytes>& peaks, const Cluster& cluster) {
  Bytes overflow = 0;
  for (DeviceId id = 0; id < peaks.size(); ++id) {
    overflow += std::max<Bytes>(0, peaks[id] - cluster.device(id).memory);
  }
  return overflow;
}

struct RandomRun {
  Placement placement;
  Schedule schedule;
  reference::Run expected;
};

RandomRun random_run(const Problem& problem, Rng& rng) {
  RandomRun result{random_placement(problem, rng), random_schedule(problem, rng), {}};
  result.expected = reference::simulate(problem.graph(), problem.cluster(), result.placement,
                                        result.schedule, problem.compile_options().in_place);
  return result;
}

void expect_same_evaluation(const Simulator& simulator, const RandomRun& random,
                            Simulator::Workspace& workspace) {
  const Problem& problem = simulator.problem();
  const ReadyOrder order(problem, random.schedule);
  std::vector<Bytes> peaks(problem.num_devices(), -1);
  const Evaluation evaluation = simulator.evaluate(random.placement, order, workspace, peaks);
  ASSERT_EQ(evaluation.step, random.expected.step);
  ASSERT_EQ(peaks, random.expected.peaks);
  ASSERT_EQ(evaluation.overflow, overflow_of(random.expected.peaks, problem.cluster()));
  ASSERT_EQ(simulator.evaluate(random.placement, order, workspace), evaluation);
  const Nanoseconds step = random.expected.step;
  ASSERT_EQ(simulator.step_time(random.placement, order, workspace), step);
  // Whoever sets a limit learns all of what is below it, and of the rest that it is not.
  for (const Nanoseconds limit :
       {step + 1, 2 * step + 1000, step, step - 1, step / 2, Nanoseconds{0}}) {
    const Evaluation found = simulator.evaluate_below(limit, random.placement, order, workspace);
    if (step < limit) {
      ASSERT_EQ(found, evaluation) << "limit " << limit;
    } else {
      ASSERT_GE(found.step, limit);
      ASSERT_EQ(found.overflow, 0);
    }
  }
}

TEST(Simulator, equals_the_reference_on_random_problems) {
  constexpr std::uint64_t kCases = 6000;
  std::uint64_t overflowing = 0;
  std::uint64_t transfers = 0;
  std::uint64_t lower = 0;  // peaks, for ops that write over inputs
  std::uint64_t plain = 0;  // by what the engine has to know
  std::uint64_t instants = 0;
  for (std::uint64_t i = 0; i < kCases; ++i) {
    Rng rng = Rng(2026).split(i);
    // Small problems first, so that the first failure is a small one.
    const auto problem = random_problem(rng, {.max_ops = 1 + i * 40 / kCases, .plain = i % 3 == 0});
    const RandomRun random = random_run(*problem, rng);
    const Simulator simulator(problem);
    if (!simulator.program().special) ++(simulator.program().instants ? instants : plain);
    const auto workspace = simulator.make_workspace();
    expect_same_evaluation(simulator, random, *workspace);
    const Timeline timeline = simulator.run(random.placement, random.schedule);
    const std::string wrong = difference(timeline, random.expected, *problem);
    if (wrong.empty() && !testing::Test::HasFatalFailure()) {
      overflowing += timeline.fits() ? 0 : 1;
      transfers += random.expected.sendings.size();
      const reference::Run apart = reference::simulate(
          problem->graph(), problem->cluster(), random.placement, random.schedule, InPlace::kNone);
      lower += apart.peaks != random.expected.peaks ? 1 : 0;
      continue;
    }
    FAIL() << "case " << i << ": " << wrong << "\n"
           << describe(*problem, random.placement, random.schedule);
  }
  // The cases are worth something only if they send tensors and run out of memory.
  EXPECT_GT(transfers, kCases);
  EXPECT_GT(overflowing, kCases / 10);
  EXPECT_GT(lower, kCases / 100);
  EXPECT_GT(plain, kCases / 20);
  EXPECT_GT(instants, kCases / 10);
}

TEST(Simulator, gives_the_same_answers_whatever_its_workspace_did_before) {
  for (std::uint64_t i = 0; i < 150; ++i) {
    Rng rng = Rng(7).split(i);
    const auto problem = random_problem(rng);
    const Simulator simulator(problem);
    const auto workspace = simulator.make_workspace();
    for (int placement = 0; placement < 20; ++placement) {
      expect_same_evaluation(simulator, random_run(*problem, rng), *workspace);
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "problem " << i;
    }
  }
}

TEST(Simulator, is_shared_by_threads_that_bring_their_own_workspaces) {
  Rng rng(11);
  const auto problem = random_problem(rng);
  const Simulator simulator(problem);
  std::vector<RandomRun> runs;
  for (int i = 0; i < 200; ++i) runs.push_back(random_run(*problem, rng));
  constexpr std::size_t kThreads = 4;
  std::vector<std::vector<Evaluation>> answers(kThreads, std::vector<Evaluation>(runs.size()));
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const auto workspace = simulator.make_workspace();
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const std::size_t at = (i + thread * runs.size() / kThreads) % runs.size();
        answers[thread][at] = simulator.evaluate(
            runs[at].placement, ReadyOrder(*problem, runs[at].schedule), *workspace);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Evaluation expected{runs[i].expected.step,
                              overflow_of(runs[i].expected.peaks, problem->cluster())};
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      ASSERT_EQ(answers[thread][i], expected) << "placement " << i << " in thread " << thread;
    }
  }
}

TEST(ReadyOrder, is_by_priority_then_index_whatever_the_priorities) {
  using Limits = std::numeric_limits<std::int64_t>;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng);
    std::vector<std::int64_t> priorities;
    for (OpId op = 0; op < problem->num_ops(); ++op) {
      // Of any size, negative ones and the extremes among them, some twice.
      const auto drawn = static_cast<std::int64_t>(rng.next() >> (1 + rng.below(63)));
      const std::int64_t known[] = {drawn, -drawn, 0, 255, 256, Limits::min(), Limits::max()};
      priorities.push_back(known[rng.below(std::size(known))]);
    }
    std::vector<OpId> expected;
    for (OpId op = 0; op < problem->num_ops(); ++op) expected.push_back(op);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](OpId a, OpId b) { return priorities[a] > priorities[b]; });
    const ReadyOrder order(*problem, {.priorities = priorities});
    std::vector<OpId> nodes;
    for (std::uint32_t rank = 0; rank < expected.size(); ++rank) {
      const OpId op = expected[rank];
      ASSERT_EQ(order.rank_of_op()[op], rank) << "seed " << seed;
      const std::uint32_t node = problem->nodes().of_op[op];
      if (problem->nodes().op[node] != op) continue;  // a folded view
      ASSERT_EQ(order.rank_of_node()[node], nodes.size()) << "seed " << seed;
      ASSERT_EQ(order.node_of_rank()[nodes.size()], node) << "seed " << seed;
      nodes.push_back(op);
    }
    ASSERT_EQ(order.node_of_rank().size(), nodes.size()) << "seed " << seed;
  }
}

TEST(Problem, has_the_durations_groups_and_devices_of_the_specification) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    Rng rng = Rng(3).split(i);
    const auto problem = random_problem(rng);
    const Graph& graph = problem->graph();
    const std::vector<OpId> leaders = reference::group_leaders(graph);
    for (OpId op = 0; op < problem->num_ops(); ++op) {
      ASSERT_EQ(problem->group_ops(problem->group_of(op))[0], leaders[op]);
      for (DeviceId device = 0; device < problem->num_devices(); ++device) {
        ASSERT_EQ(problem->duration(op, device),
                  reference::duration(graph, problem->cluster(), op, device));
      }
    }
    for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
      for (DeviceId to = 1; to < problem->num_devices(); ++to) {
        const Link* link = problem->cluster().link(0, to);
        ASSERT_EQ(problem->transfer_time(tensor, 0, to),
                  link == nullptr ? Problem::kNoLink
                                  : reference::sending_length(*link, graph.bytes(tensor)));
      }
    }
  }
}

TEST(Placement, is_refused_exactly_when_the_specification_refuses_it) {
  int refused = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    Rng rng = Rng(5).split(i);
    const auto problem = random_problem(rng, {.max_ops = 12});
    Placement placement = random_placement(*problem, rng);
    if (rng.chance(0.8)) {
      placement[rng.below(placement.size())] =
          static_cast<DeviceId>(rng.below(problem->num_devices() + 1ULL));
    }
    if (rng.chance(0.05)) placement.pop_back();
    const std::string reason = reference::refusal(problem->graph(), problem->cluster(), placement);
    try {
      check_placement(*problem, placement);
      ASSERT_EQ(reason, "") << describe(*problem, placement, {});
    } catch (const Error& error) {
      ++refused;
      ASSERT_NE(reason, "") << error.what() << "\n" << describe(*problem, placement, {});
      ASSERT_EQ(error.kind(), ErrorKind::kInput);
      if (placement.size() == problem->num_ops()) {
        ASSERT_NE(std::string(error.what()).find("op '"), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace emplace
