// Placers where streams are simulated: estimates, exact values, bounds, and that no stream is worse
// than the best step repeated.
#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "sim/stream_run.h"

#include "placer/placer.h"

#include "placers/all.h"

#include "stream/simulated.h"
#include "support/all_placements.h"
#include "support/budgets.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

bool small(const Problem& problem) {
  double placements = 1;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    placements *= static_cast<double>(problem.allowed_devices(group).size());
  }
  return placements <= 300;
}

struct Best {
  std::optional<Evaluation> stream;    // of all placements
  std::optional<Evaluation> repeated;  // one step after the other
};

Best best_streams(const Problem& problem, Evaluator& evaluator) {
  Best best;
  const auto keep = [](std::optional<Evaluation>& least, const Evaluation& value) {
    if (!least || value < *least) least = value;
  };
  const ReadyOrder fifo;
  for_each_placement(problem, [&](const Placement& placement) {
    keep(best.stream, evaluator.evaluate_exactly(placement, {}));
    const StreamRun one = StreamSimulator(problem, placement, fifo).run(1);
    keep(best.repeated, {one.period, one.overflow});
  });
  return best;
}

// Bounds hold for every placement, though what is alive in flight is not counted by them.
TEST(SimulatedStream, of_auto_is_no_worse_than_the_best_step_repeated_and_its_bound_holds) {
  int compared = 0;
  int found = 0;
  int better = 0;
  for (std::uint64_t i = 0; compared < 60; ++i) {
    Rng rng = Rng(21).split(i);
    const auto problem =
        random_problem(rng, {.max_ops = 10, .max_devices = 3, .roomy = i % 3 != 0});
    if (!small(*problem)) continue;
    PlaceContext context(problem, StreamPeriod{});
    std::optional<PlaceResult> result;
    try {
      result = all_placers().make({"auto", {}})->place(context, evaluations(4000), rng);
    } catch (const Error&) {
      continue;  // no links
    }
    const Best best = best_streams(*problem, context.evaluator());
    const Evaluation value =
        context.evaluator().evaluate_exactly(result->placement, result->schedule);
    EXPECT_EQ(context.incumbent().value(), value);
    EXPECT_FALSE(*best.repeated < value) << i << "\n" << describe(*problem, result->placement, {});
    if (best.stream->fits()) {
      EXPECT_LE(context.incumbent().bound().step, best.stream->step) << i;
    }
    ++compared;
    found += *best.stream < value ? 0 : 1;
    better += value < *best.repeated ? 1 : 0;
  }
  EXPECT_GT(found, 50);
  EXPECT_GT(better, 4);
}

TEST(SimulatedStream, is_estimated_between_its_load_and_one_step_after_the_other) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    Rng rng = Rng(22).split(i);
    const auto problem = random_problem(rng, {.max_ops = 25, .roomy = i % 2 == 0});
    const Placement placement = random_placement(*problem, rng);
    Evaluator stream(problem, StreamPeriod{});
    Evaluator step(problem);
    const Evaluation estimate = stream.evaluate(placement);
    const Evaluation alone = step.evaluate(placement);
    EXPECT_EQ(estimate.overflow, alone.overflow);
    EXPECT_LE(estimate.step, alone.step);
    if (!alone.fits()) continue;
    EXPECT_GE(estimate.step, throughput(*problem, placement, Overlap::kFull).period);
    EXPECT_TRUE(stream.evaluate_exactly(placement, {}).fits());
  }
}

// Ten ops in a row, each with an output of 100 bytes, of which two are alive at a time.
std::shared_ptr<const Problem> chain_problem(int devices, Bytes memory) {
  TimedGraph graph;
  TensorId last = graph.op("op0", 100, {}, 100);
  for (int i = 1; i < 10; ++i) last = graph.op("op" + std::to_string(i), 100, {last}, 100);
  return compile_timed(graph.build(), gpu_cluster(devices, memory));
}

PlaceResult place_stream(const std::string& key, PlaceContext& context) {
  return all_placers().make({key, {}})->place(context, evaluations(3000), Rng(1));
}

// What another process claims is not proven by repeating it.
TEST(SimulatedStream, refutes_a_bound_that_others_claimed) {
  int refuted = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    Rng rng = Rng(22).split(i);
    const auto problem = random_problem(rng, {.max_ops = 30, .max_devices = 3, .roomy = true});
    PlaceContext context(problem, StreamPeriod{});
    offer_exactly(context, {.placement = random_placement(*problem, rng)});
    const Evaluation begin = *context.incumbent().value();
    if (!begin.fits()) continue;
    context.incumbent().hear({begin.step - 1, "a lie"});
    try {
      solve_simulated_stream(context, evaluations(2000), rng);
    } catch (const Error&) {
      continue;  // no links
    }
    const Nanoseconds best = context.incumbent().value()->step;
    EXPECT_LE(context.incumbent().bound().step, best) << i;
    if (best < begin.step - 1) ++refuted;
  }
  EXPECT_GT(refuted, 5);
}

TEST(SimulatedStream, fits_where_one_step_does) {
  for (const char* key : {"auto", "ip", "dp", "lns", "single"}) {
    const auto problem = chain_problem(1, 200);
    PlaceContext context(problem, StreamPeriod{});
    const PlaceResult result = place_stream(key, context);
    const Evaluation value = context.evaluator().evaluate_exactly(result.placement, {});
    EXPECT_TRUE(value.fits()) << key;
    EXPECT_EQ(value.step, 1'000'000) << key;
  }
}

TEST(SimulatedStream, divides_a_chain_where_there_is_memory_for_steps_in_flight) {
  for (const char* key : {"auto", "ip", "dp"}) {
    const auto problem = chain_problem(2, 1000);
    PlaceContext context(problem, StreamPeriod{});
    const PlaceResult result = place_stream(key, context);
    // At most a thousandth above the load, with as few in flight as that takes.
    EXPECT_LE(context.evaluator().evaluate_exactly(result.placement, {}).step, 500'500) << key;
  }
}

// 300 bytes hold what one step has on a device, and the tensor that arrives for the next, but no
// more.
TEST(SimulatedStream, counts_what_is_in_flight) {
  const auto problem = chain_problem(2, kUnlimited);
  Placement halves(10, 0);
  std::fill(halves.begin() + 5, halves.end(), 1);
  const ReadyOrder fifo;
  const StreamSimulator stream(*problem, halves, fifo);
  EXPECT_EQ(stream.run(1).peaks, (std::vector<Bytes>{200, 200}));
  const StreamRun three = stream.run(3);
  EXPECT_EQ(three.period, 500'000);
  EXPECT_EQ(three.peaks[1], 300);
}

}  // namespace
}  // namespace emplace
