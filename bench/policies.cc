// Where the time of learning goes. First what is ours against the best that libtorch offers for the
// same, forward and backward, on one thread, in the shapes of the placers' defaults; then, by
// learned placer, what a placement costs that is sampled, evaluated and learned from.
//
//   build/bench/policies [GRAPH] [--cluster CLUSTER] [--rounds N] [--threads N]
#include <algorithm>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/csr.h"
#include "base/rng.h"

#include "placer/run.h"

#include "placers/all.h"

#include "io/readers.h"
#include "learn/encoders/additive_attention.h"
#include "learn/encoders/lstm.h"
#include "learn/encoders/neighbours.h"
#include "learn/nn/module.h"
#include "learn/nn/single_thread.h"
#include "learn/policies/seq2seq_net.h"

namespace {

using namespace emplace;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Of `rounds` runs, after one that does not count.
double best_milliseconds(int rounds, const std::function<void()>& task) {
  task();
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double begin = cpu_seconds();
    task();
    best = std::min(best, (cpu_seconds() - begin) * 1e3);
  }
  return best;
}

void print_ratio(const std::string& name, int rounds, const std::function<void()>& ours,
                 const std::function<void()>& library) {
  const double own = best_milliseconds(rounds, ours);
  const double libtorch = best_milliseconds(rounds, library);
  fmt::print("{:<58} {:>9.3f} {:>11.3f} {:>6.1f}\n", name, own, libtorch, libtorch / own);
}

torch::Tensor input(std::vector<std::int64_t> shape, double scale, Rng& rng) {
  return (learn::normals(std::move(shape), rng) * scale).requires_grad_(true);
}

// Inputs of their own, as they come to both: projected, then the recurrence.
void compare_lstm(std::int64_t steps, std::int64_t batch, std::int64_t width,
                  std::int64_t input_width, int rounds) {
  Rng rng(1);
  const torch::Tensor x = input({steps, batch, input_width}, 1, rng);
  const torch::Tensor weight = input({input_width, 4 * width}, 0.1, rng);
  const learn::LstmWeights weights{.recurrent = input({width, 4 * width}, 0.1, rng),
                                   .forget_bias = torch::ones({1}).requires_grad_(true)};
  const learn::LstmState zeros{.h = torch::zeros({batch, width}),
                               .c = torch::zeros({batch, width})};
  const auto ours = [&] {
    const learn::LstmOutput output = learn::run_lstm(weights, torch::matmul(x, weight), zeros);
    torch::autograd::grad({output.states.sum()},
                          {x, weight, weights.recurrent, weights.forget_bias});
  };
  const torch::Tensor w = input({4 * width, input_width}, 0.1, rng);
  const torch::Tensor u = input({4 * width, width}, 0.1, rng);
  const torch::Tensor bias = input({4 * width}, 0.1, rng);
  const torch::Tensor begin = torch::zeros({1, batch, width});
  const auto library = [&] {
    const auto output =
        torch::lstm(x, {begin, begin}, {w, u, bias, bias}, /*has_biases=*/true, /*num_layers=*/1,
                    /*dropout=*/0.0, /*train=*/true, /*bidirectional=*/false,
                    /*batch_first=*/false);
    torch::autograd::grad({std::get<0>(output).sum()}, {x, w, u, bias});
  };
  print_ratio(fmt::format("LSTM, {} steps, {} rows, width {}: torch::lstm", steps, batch, width),
              rounds, ours, library);
}

void compare_attention(std::int64_t rows, std::int64_t slots, std::int64_t width, int rounds) {
  Rng rng(1);
  const torch::Tensor queries = input({rows, width}, 1, rng);
  const torch::Tensor memory = input({slots, width}, 1, rng);
  const torch::Tensor v = input({width}, 0.2, rng);
  const auto library = [&] {
    constexpr std::int64_t kRows = 32;  // whose activations stay in a cache
    std::vector<torch::Tensor> contexts;
    for (const torch::Tensor& some : queries.split(kRows)) {
      const torch::Tensor scores = torch::matmul(torch::tanh(some.unsqueeze(1) + memory), v);
      contexts.push_back(torch::mm(torch::softmax(scores, 1), memory));
    }
    torch::autograd::grad({torch::cat(contexts).sum()}, {queries, memory, v});
  };
  print_ratio(
      fmt::format("additive attention, {} x {}, width {}: the formula", rows, slots, width), rounds,
      [&] {
        torch::autograd::grad({learn::additive_attention(queries, memory, v).sum()},
                              {queries, memory, v});
      },
      library);
}

// Every node hears of some of the twenty before it.
Csr<std::uint32_t> some_graph(std::uint32_t nodes, Rng& rng) {
  Csr<std::uint32_t> lists;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    std::vector<std::uint32_t> heard;
    for (std::uint32_t other = node < 20 ? 0 : node - 20; other < node; ++other) {
      if (rng.uniform() < 0.08) heard.push_back(other);
    }
    lists.push_back(heard);
  }
  return lists;
}

void compare_sums(std::uint32_t nodes, std::int64_t width, int rounds) {
  Rng rng(1);
  const Csr<std::uint32_t> lists = some_graph(nodes, rng);
  const learn::Neighbours neighbours(lists, {}, torch::kCPU);
  std::vector<std::int64_t> offsets{0}, sources;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    sources.insert(sources.end(), lists[node].begin(), lists[node].end());
    offsets.push_back(static_cast<std::int64_t>(sources.size()));
  }
  const torch::Tensor bags = torch::tensor(offsets), members = torch::tensor(sources);
  const torch::Tensor weights = torch::ones({members.size(0)});
  const torch::Tensor x = input({nodes, width}, 1, rng);
  print_ratio(
      fmt::format("sums over {} edges, width {}: embedding_bag's gradient", sources.size(), width),
      rounds, [&] { torch::autograd::grad({neighbours.sum(x).sum()}, {x}); },
      [&] {
        const auto sums = torch::embedding_bag(x, members, bags, false, 0, false, weights, true);
        torch::autograd::grad({std::get<0>(sums).sum()}, {x});
      });
}

void compare_sampling(std::int64_t steps, std::int64_t count,
                      const learn::Seq2SeqSettings& settings, int rounds) {
  constexpr std::int64_t kDevices = 4;
  constexpr std::int64_t kInputs = 64;
  Rng rng(1);
  learn::Parameters parameters;
  const learn::Seq2Seq net(parameters, "net", kInputs, kDevices, settings, rng);
  const torch::Tensor x = learn::normals({steps, kInputs}, rng);
  const torch::Tensor mask = torch::zeros({steps, kDevices});
  const torch::Tensor uniform = learn::uniforms({count, steps}, rng);
  print_ratio(
      fmt::format("sampling, {} steps, {} samples, width {}: operations", steps, count,
                  settings.width),
      rounds, [&] { net.sample(x, mask, uniform); }, [&] { net.sample_plainly(x, mask, uniform); });
}

void compare_with_library(int rounds) {
  const learn::SingleThread single_thread;
  fmt::print("{:<58} {:>9} {:>11} {:>6}\n", "forward + backward", "ours ms", "libtorch ms",
             "ratio");
  compare_lstm(200, 10, 64, 64, rounds);     // ColocRL's and Spotlight's decoder, half of a batch
  compare_lstm(200, 1, 64, 64, rounds);      // their encoder
  compare_lstm(128, 10, 64, 128, rounds);    // a segment of Mars
  compare_lstm(80, 4, 512, 1024, rounds);    // HDP's decoder
  compare_lstm(80, 1, 256, 100, rounds);     // one direction of its encoder
  compare_attention(2000, 200, 64, rounds);  // ColocRL, Spotlight
  compare_attention(320, 80, 512, rounds);   // HDP
  compare_sampling(200, 20, {.tanh_constant = 5, .repeat = 2}, rounds);  // ColocRL, Spotlight
  compare_sampling(128, 20, {.bidirectional = true, .product_attention = true}, rounds);  // Mars
  compare_sums(32, 320, rounds);    // Placeto: 32 states of width 10
  compare_sums(100, 1024, rounds);  // its general policy
  compare_sums(3000, 64, rounds);   // Mars on a thousand ops and more
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
    compare_with_library(rounds);
    if (!graph.empty()) time_placers(graph, cluster, rounds, threads);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
