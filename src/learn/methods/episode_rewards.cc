#include "learn/methods/episode_rewards.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/check.h"

#include "learn/train/state.h"

namespace emplace::learn {

Runtimes::Runtimes(const Problem& problem, const RuntimeSettings& settings)
    : settings_(settings), time_unit_(1e9), memory_unit_(1e9) {
  if (settings.in_seconds) return;
  double serial = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    serial += static_cast<double>(problem.fastest_duration(op));
  }
  time_unit_ = std::max(1.0, serial);
  Bytes smallest = problem.cluster().device(0).memory;
  for (DeviceId device = 1; device < problem.num_devices(); ++device) {
    smallest = std::min(smallest, problem.cluster().device(device).memory);
  }
  memory_unit_ = std::max(1.0, static_cast<double>(smallest));
}

double Runtimes::operator()(const SampleOutcome& outcome) const {
  const double time = static_cast<double>(outcome.step) / time_unit_;
  const double missing = static_cast<double>(outcome.overflow) / memory_unit_;
  const double penalised =
      outcome.valid ? std::min(time + settings_.penalty * missing, settings_.cap) : settings_.cap;
  // Of a step that takes no time at all there is no logarithm.
  return settings_.logarithm ? std::log(std::max(penalised, 1e-9)) : penalised;
}

std::vector<double> returns_of(EpisodeReward reward, std::span<const double> runtimes) {
  EMPLACE_CHECK(!runtimes.empty());
  const std::size_t steps = runtimes.size() - 1;
  std::vector<double> returns(steps);
  double least = runtimes[steps];
  for (std::size_t step = steps; step-- > 0;) {
    least = std::min(least, runtimes[step + 1]);
    switch (reward) {
      case EpisodeReward::kImprovement:
        returns[step] = runtimes[step] - runtimes[steps];
        break;
      case EpisodeReward::kTerminal:
        returns[step] = -runtimes[steps];
        break;
      case EpisodeReward::kMinimum:
        returns[step] = runtimes[step] - least;
        break;
    }
  }
  return returns;
}

void StepBaseline::add(std::vector<double> returns) {
  latest_.push_back(std::move(returns));
  if (latest_.size() > episodes_) latest_.pop_front();
}

std::vector<double> StepBaseline::values() const {
  EMPLACE_CHECK(!latest_.empty());
  std::vector<double> means(latest_.front().size(), 0);
  for (const std::vector<double>& returns : latest_) {
    for (std::size_t step = 0; step < means.size(); ++step) means[step] += returns[step];
  }
  for (double& mean : means) mean /= static_cast<double>(latest_.size());
  return means;
}

void StepBaseline::save(StateWriter& state, const std::string& prefix) const {
  std::vector<double> all;
  for (const std::vector<double>& returns : latest_) {
    all.insert(all.end(), returns.begin(), returns.end());
  }
  state.put(prefix + ".episodes", static_cast<std::int64_t>(latest_.size()));
  state.put(prefix + ".returns", all);
}

void StepBaseline::load(const StateReader& state, const std::string& prefix,
                        std::optional<std::size_t> steps) {
  const auto most = static_cast<std::int64_t>(episodes_);
  const auto episodes = static_cast<std::size_t>(state.integer(prefix + ".episodes", 0, most));
  const std::string returns = prefix + ".returns";
  const std::vector<double> all = state.reals(returns);
  const std::size_t each = steps.value_or(all.size() / std::max<std::size_t>(1, episodes));
  // Of what is there: the product with what is said to be there may overflow.
  if (each == 0 ? !all.empty() : all.size() % each != 0 || all.size() / each != episodes) {
    state.refuse(returns, fmt::format("{} numbers for each of {} episodes", each, episodes));
  }
  latest_.clear();
  for (std::size_t i = 0; i < episodes; ++i) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i * each);
    latest_.emplace_back(first, first + static_cast<std::ptrdiff_t>(each));
  }
}

}  // namespace emplace::learn
