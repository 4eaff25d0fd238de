// How much Placeto's gradient differs from one episode to the next, with rewards at every step and
// at the end alone: both have the same mean, so what differs is noise. The policy learns from
// rewards at every step meanwhile. Prints what docs/results/learned.md shows.
//
//   build/bench/rewards [MODEL] [--cluster CLUSTER] [--units N] [--episodes N] [--rounds N]
//     [--same-start]
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/rng.h"

#include "placer/placer.h"

#include "cli/blas.h"
#include "io/readers.h"
#include "learn/methods/episode_policy.h"
#include "learn/methods/episode_run.h"
#include "learn/methods/episodes.h"
#include "learn/nn/optimizer.h"
#include "learn/units/groupings.h"

namespace {

using namespace emplace;
using namespace emplace::learn;

struct Settings {
  std::string model = "zoo:inception-v3:batch=32";
  std::string cluster = "2xk80-placeto@10868MiB";
  std::int64_t units = 80;
  std::size_t episodes = 64;  // that the variance is of
  std::int64_t rounds = 60;
  std::int64_t every = 20;  // rounds
  bool same_start = false;
};

// Over episodes; of the mean's square.
struct Noise {
  double variance = 0;
  double signal = 0;
};

Noise noise_of(const EpisodePolicy& policy, const std::vector<Trajectory>& trajectories,
               EpisodeReward reward) {
  StepBaseline baseline(1);
  const std::vector<WeightedDecision> all = weighted_decisions(trajectories, reward, baseline);
  const std::size_t steps = trajectories.front().decisions.size();
  const auto count = static_cast<double>(trajectories.size());
  torch::Tensor sum;
  double squares = 0;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    std::vector<torch::Tensor> flat;
    for (const torch::Tensor& part :
         gradient_of(policy, std::span(all).subspan(i * steps, steps), 0, 1).by_parameter) {
      flat.push_back(part.reshape(-1));
    }
    const torch::Tensor gradient = torch::cat(flat).to(torch::kFloat64);
    squares += gradient.square().sum().item<double>();
    sum = sum.defined() ? sum + gradient : gradient;
  }
  const double of_mean = (sum / count).square().sum().item<double>();
  const double variance = (squares - count * of_mean) / (count - 1);
  // The mean's square has a part of the variance in it.
  return {variance, of_mean - variance / count};
}

class Study {
 public:
  explicit Study(const Settings& settings)
      : settings_(settings),
        context_(compile(read_model(settings.model).graph, read_cluster(settings.cluster))),
        environment_(context_, Budget{}, "rewards"),
        policy_(
            group_as_colocrl(context_.problem(), {.most_units = settings.units, .acyclic = true}),
            episodes_.network, episodes_.memory_feature, torch::kCPU, rng_),
        runtimes_(context_.problem(), episodes_.runtime),
        baseline_(episodes_.baseline_episodes),
        optimizer_({.learning_rate = episodes_.learning_rate, .clip_norm = episodes_.clip_norm}) {}

  void run() {
    fmt::print("{} on {}: {} units, variances over {} episodes.\n\n", settings_.model,
               settings_.cluster, policy_.units().size(), settings_.episodes);
    fmt::print(
        "| updates | mean step at the end | variance, at the end / stepwise | over the mean's "
        "square: stepwise | at the end |\n|---|---|---|---|---|\n");
    for (std::int64_t round = 0; round <= settings_.rounds; ++round) {
      if (round % settings_.every == 0) print(round);
      learn();
    }
  }

 private:
  std::vector<Trajectory> play(std::size_t count) {
    std::vector<Trajectory> trajectories(count);
    const std::vector<DeviceId> first = random_devices(policy_, rng_);
    for (Trajectory& trajectory : trajectories) {
      trajectory.devices = settings_.same_start ? first : random_devices(policy_, rng_);
      trajectory.turns.assign(policy_.order().begin(), policy_.order().end());
    }
    play_episode(policy_, runtimes_, environment_, rng_, trajectories);
    return trajectories;
  }

  void print(std::int64_t round) {
    const std::vector<Trajectory> trajectories = play(settings_.episodes);
    const Noise stepwise = noise_of(policy_, trajectories, EpisodeReward::kImprovement);
    const Noise terminal = noise_of(policy_, trajectories, EpisodeReward::kTerminal);
    double end = 0;
    for (const Trajectory& trajectory : trajectories) {
      end += trajectory.runtimes.back() / static_cast<double>(trajectories.size());
    }
    const auto over = [](const Noise& noise) {
      // Where chance is all that there is to see of the mean.
      return noise.signal > 0 ? fmt::format("{:.0f}", noise.variance / noise.signal)
                              : std::string("not seen");
    };
    fmt::print("| {} | {:.3f} | {:.2f} | {} | {} |\n", round, end,
               terminal.variance / stepwise.variance, over(stepwise), over(terminal));
    std::fflush(stdout);
  }

  void learn() {
    const std::vector<Trajectory> trajectories = play(static_cast<std::size_t>(episodes_.workers));
    const std::vector<WeightedDecision> decisions =
        weighted_decisions(trajectories, EpisodeReward::kImprovement, baseline_);
    DecisionGradient gradient = gradient_of(policy_, decisions, episodes_.last_entropy_weight, 1);
    optimizer_.step(policy_.parameters().tensors(), std::move(gradient.by_parameter));
  }

  Settings settings_;
  EpisodeSettings episodes_;
  Rng rng_{1};
  PlaceContext context_;
  Environment environment_;
  EpisodePolicy policy_;
  Runtimes runtimes_;
  StepBaseline baseline_;
  learn::Optimizer optimizer_;
};

}  // namespace

int main(int argc, char** argv) {
  emplace::cli::prepare_blas();
  Settings settings;
  CLI::App app("The noise of Placeto's gradient, by its rewards.");
  app.add_option("model", settings.model, "Graph file, or zoo:NAME")->capture_default_str();
  app.add_option("--cluster", settings.cluster, "File or preset")->capture_default_str();
  app.add_option("--units", settings.units, "ColocRL's, at most")->capture_default_str();
  app.add_option("--episodes", settings.episodes, "That a variance is of")
      ->check(CLI::Range(2, 100'000))
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "Updates")->capture_default_str();
  app.add_option("--every", settings.every, "Updates from one row to the next")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--same-start", settings.same_start,
               "The episodes of a round, and those that a variance is of, begin alike");
  CLI11_PARSE(app, argc, argv);
  try {
    Study(settings).run();
  } catch (const Error& error) {
    fmt::print(stderr, "rewards: {}\n", error.what());
    return 2;
  }
}
