// Where the time of learning goes. First the loops of our own against the same in libtorch's
// operations, forward and backward, on one thread; then, by learned placer, what a placement costs
// that is sampled, evaluated and learned from.
//
//   build/bench/policies [GRAPH] [--cluster CLUSTER] [--rounds N] [--threads N]
#include <algorithm>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/rng.h"

#include "placer/run.h"

#include "placers/all.h"

#include "cli/blas.h"
#include "io/readers.h"
#include "learn/encoders/additive_attention.h"
#include "learn/encoders/lstm.h"
#include "learn/encoders/pair_scores.h"
#include "learn/nn/module.h"
#include "learn/nn/single_thread.h"

namespace {

using namespace emplace;

// As ColocRL and Spotlight have them by default: half a batch, since it is scored in two parts.
constexpr std::int64_t kUnits = 200;
constexpr std::int64_t kSamples = 10;
constexpr std::int64_t kWidth = 64;
constexpr std::int64_t kDevices = 4;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double best_milliseconds(int rounds, const std::function<void()>& task) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double begin = cpu_seconds();
    task();
    best = std::min(best, (cpu_seconds() - begin) * 1e3);
  }
  return best;
}

void print_ratio(const char* name, int rounds, const std::function<void()>& loops,
                 const std::function<void()>& plain) {
  const double own = best_milliseconds(rounds, loops);
  const double libtorch = best_milliseconds(std::max(2, rounds / 4), plain);
  fmt::print("{:<20} {:>9.2f} {:>10.2f} {:>7.1f}\n", name, own, libtorch, libtorch / own);
}

void compare_loops(int rounds) {
  using namespace learn;
  const SingleThread single_thread;
  Rng rng(1);
  const auto input = [&](std::vector<std::int64_t> shape, double scale) {
    return (normals(std::move(shape), rng) * scale).requires_grad_(true);
  };
  fmt::print("{:<20} {:>9} {:>10} {:>7}\n", "forward + backward", "loops ms", "libtorch ms",
             "ratio");

  const LstmWeights weights{.recurrent = input({kWidth, 4 * kWidth}, 0.1),
                            .forget_bias = torch::ones({1}).requires_grad_(true)};
  const torch::Tensor gates = input({kUnits, kSamples, 4 * kWidth}, 1);
  const LstmState zeros{.h = torch::zeros({kSamples, kWidth}),
                        .c = torch::zeros({kSamples, kWidth})};
  const auto lstm = [&](const auto& run) {
    torch::autograd::grad({run(weights, gates, zeros).states.sum()},
                          {gates, weights.recurrent, weights.forget_bias});
  };
  print_ratio(
      "LSTM", rounds, [&] { lstm(run_lstm); }, [&] { lstm(run_lstm_plainly); });

  const torch::Tensor queries = input({kUnits * kSamples, kWidth}, 1);
  const torch::Tensor memory = input({kUnits, kWidth}, 1);
  const torch::Tensor v = input({kWidth}, 0.2);
  const auto attention = [&](const auto& attend) {
    torch::autograd::grad({attend(queries, memory, v).sum()}, {queries, memory, v});
  };
  print_ratio(
      "additive attention", rounds, [&] { attention(additive_attention); },
      [&] { attention(additive_attention_plainly); });

  const torch::Tensor of_units = input({kUnits, kSamples, kWidth}, 1);
  const torch::Tensor of_devices = input({kUnits, kDevices, kWidth}, 1);
  const auto pairs = [&](const auto& score) {
    torch::autograd::grad({score(of_units, of_devices, v).sum()}, {of_units, of_devices, v});
  };
  print_ratio(
      "scores of pairs", rounds, [&] { pairs(pair_scores); }, [&] { pairs(pair_scores_plainly); });
}

void time_placers(const std::string& graph, const std::string& cluster, int rounds, int threads) {
  const auto problem = compile(read_model(graph).graph, read_cluster(cluster));
  fmt::print("\n{:<12} {:>11} {:>8} {:>8} {:>9} {:>8}   {}\n", "placer", "evaluations", "policy",
             "learner", "evaluator", "waiting", "ms per placement");
  for (const MethodInfo* info : all_placers().list()) {
    if (info->family != "learned") continue;
    PlaceContext context(problem);
    Budget budget;
    budget.threads = threads;
    std::atomic<bool> enough = false;
    budget.cancelled = &enough;
    TrainingPoint sum;
    context.learning().on_round = [&](const TrainingPoint& point) {
      sum.policy_seconds += point.policy_seconds;
      sum.learner_seconds += point.learner_seconds;
      sum.evaluation_seconds += point.evaluation_seconds;
      sum.waiting_seconds += point.waiting_seconds;
      sum.evaluations = point.evaluations;
      if (point.round >= rounds) enough = true;
    };
    run_placer(all_placers(), context, {{info->key, {}}, std::string(kOwnSchedule), 1}, budget);
    const auto each = [&](double seconds) {
      return seconds * 1e3 / static_cast<double>(std::max<std::int64_t>(1, sum.evaluations));
    };
    fmt::print("{:<12} {:>11} {:>8.2f} {:>8.2f} {:>9.2f} {:>8.2f}\n", info->key, sum.evaluations,
               each(sum.policy_seconds), each(sum.learner_seconds), each(sum.evaluation_seconds),
               each(sum.waiting_seconds));
  }
}

}  // namespace

int main(int argc, char** argv) {
  emplace::cli::prepare_blas();
  CLI::App app("Where the time of learning goes.");
  std::string graph;
  std::string cluster = "4xp100";
  int rounds = 10;
  int threads = 2;
  app.add_option("graph", graph, "Graph file, for the placers");
  app.add_option("--cluster", cluster, "Cluster file or preset");
  app.add_option("--rounds", rounds, "Of learning, and of each measurement");
  app.add_option("--threads", threads, "For the placers");
  CLI11_PARSE(app, argc, argv);
  try {
    compare_loops(rounds);
    if (!graph.empty()) time_placers(graph, cluster, rounds, threads);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
