#include "learn/learners/ppo_batch.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace emplace::learn {
namespace {

// Where all costs of a batch are nearly the same, dividing by their deviation would make noise of
// rounding: it counts as at least this share of the mean cost.
constexpr double kSmallestDeviation = 1e-3;

// KL(old || new), summed over decisions, the mean over samples.
torch::Tensor divergence_of(const std::vector<torch::Tensor>& before,
                            const std::vector<torch::Tensor>& after) {
  torch::Tensor sum;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const torch::Tensor own = (before[i].exp() * (before[i] - after[i])).sum(-1).sum(-1).mean();
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

}  // namespace

PpoBatch::PpoBatch(Policy& policy, const Samples& samples, const PpoSettings& settings,
                   std::function<torch::Tensor()> advantages)
    : policy_(policy), samples_(samples), settings_(settings), ask_(std::move(advantages)) {
  EMPLACE_CHECK(policy.shards() <= static_cast<std::int64_t>(kMostShards));
}

Gradient PpoBatch::gradient(double kl_weight, int threads) {
  std::fill(divergences_.begin(), divergences_.end(), 0.0);
  Gradient result =
      gradient_of(policy_, samples_, threads, [&](const Scores& scores, const Shard& shard) {
        std::call_once(asked_, [&] { advantages_ = ask_(); });
        return loss(scores, shard, kl_weight);
      });
  first_ = false;
  return result;
}

double PpoBatch::divergence() const {
  double sum = 0;
  for (const double value : divergences_) sum += value;
  return sum / static_cast<double>(samples_.size() * samples_.actions.size(1));
}

torch::Tensor PpoBatch::loss(const Scores& scores, const Shard& shard, double kl_weight) {
  const auto index = static_cast<std::size_t>(shard.index);
  if (first_) {
    log_probs_[index] = scores.log_probs.detach();
    for (const torch::Tensor& tensor : scores.distributions) {
      distributions_[index].push_back(tensor.detach());
    }
  }
  const double share = static_cast<double>(shard.count) / static_cast<double>(samples_.size());
  const torch::Tensor advantage = advantages_.slice(0, shard.first, shard.first + shard.count)
                                      .to(scores.log_probs.device())
                                      .unsqueeze(1);
  const torch::Tensor ratio = (scores.log_probs - log_probs_[index]).exp();
  const torch::Tensor kl = divergence_of(distributions_[index], scores.distributions);
  divergences_[index] = kl.item<double>() * static_cast<double>(shard.count);
  torch::Tensor gain;
  if (settings_.clip > 0) {
    const torch::Tensor clipped = ratio.clamp(1 - settings_.clip, 1 + settings_.clip);
    gain = torch::minimum(ratio * advantage, clipped * advantage).sum(1).mean();
  } else {
    gain = (ratio * advantage).sum(1).mean() - kl_weight * kl;
  }
  const auto decisions = static_cast<double>(scores.log_probs.size(1));
  return -share * (gain + settings_.entropy_weight * decisions * scores.entropy);
}

torch::Tensor advantages_of(const std::vector<double>& costs, double baseline, bool normalize) {
  const auto count = static_cast<double>(costs.size());
  double deviation = 1;
  if (normalize) {
    double mean = 0;
    double squares = 0;
    for (const double cost : costs) {
      mean += cost / count;
      squares += std::pow(cost - baseline, 2) / count;
    }
    deviation = std::max({std::sqrt(squares), kSmallestDeviation * mean, 1e-12});
  }
  torch::Tensor advantages = torch::empty({static_cast<std::int64_t>(costs.size())});
  auto values = advantages.accessor<float, 1>();
  for (std::size_t i = 0; i < costs.size(); ++i) {
    values[static_cast<std::int64_t>(i)] = static_cast<float>((baseline - costs[i]) / deviation);
  }
  return advantages;
}

}  // namespace emplace::learn
