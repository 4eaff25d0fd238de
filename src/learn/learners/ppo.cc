#include "learn/learners/ppo.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "learn/learner.h"
#include "learn/learners/baseline.h"
#include "learn/optimizer.h"

namespace emplace::learn {
namespace {

// Where all costs of a batch are nearly the same, dividing by their deviation would make noise of
// rounding: it counts as at least this share of the mean cost.
constexpr double kSmallestDeviation = 1e-3;
// The KL weight stays within these factors of what it was at first: near certainty the divergence
// all but vanishes, and a weight that kept falling would let the next step go anywhere.
constexpr double kWeightRange = 64;
// How the learning rate follows the divergence.
constexpr double kFarTooFar = 4;
constexpr double kRateStep = 1.5;
constexpr double kRateRange = 16;

// KL(old || new), summed over decisions, the mean over samples.
torch::Tensor divergence(const std::vector<torch::Tensor>& before,
                         const std::vector<torch::Tensor>& after) {
  torch::Tensor sum;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const torch::Tensor own = (before[i].exp() * (before[i] - after[i])).sum(-1).sum(-1).mean();
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

class Ppo final : public Learner {
 public:
  Ppo(const Problem& problem, const PpoSettings& settings)
      : settings_(settings),
        costs_(problem, settings.cost),
        optimizer_(settings.optimizer),
        baseline_(settings.baseline_decay),
        kl_weight_(settings.kl_weight) {}

  std::int64_t batch() const override { return settings_.batch; }

  UpdateReport update(Policy& policy, const Samples& samples, PendingOutcomes& outcomes,
                      int threads) override {
    UpdateReport report;
    Batch batch(samples);
    for (std::int64_t epoch = 0; epoch < settings_.epochs; ++epoch) {
      std::fill(batch.divergences.begin(), batch.divergences.end(), 0.0);
      const Gradient gradient =
          gradient_of(policy, samples, threads, [&](const Scores& scores, const Shard& shard) {
            std::call_once(batch.weighed,
                           [&] { batch.advantages = weigh(outcomes.get(), report); });
            return loss(batch, scores, shard, epoch == 0);
          });
      if (epoch == 0) report.entropy = gradient.entropy;
      report.kl = batch.divergence_per_decision();
      // What the steps so far have done; the last one's is not worth another pass.
      if (settings_.kl_share > 0 && report.kl > kFarTooFar * settings_.kl_share * report.entropy) {
        break;
      }
      report.gradient_norm =
          optimizer_.step(policy.parameters().tensors(), gradient.by_parameter, rate_);
    }
    // With one step there was no divergence to see yet.
    if (settings_.epochs > 1) adapt(report);
    baseline_.update(report.mean_cost);
    return report;
  }

  void restart() override {
    optimizer_.restart();
    baseline_.restart();
    kl_weight_ = settings_.kl_weight;
    rate_ = 1;
  }
  void save(StateWriter& state) const override {
    optimizer_.save(state, "optimizer");
    baseline_.save(state);
    state.put("kl_weight", kl_weight_);
    state.put("rate", rate_);
  }
  void load(const StateReader& state, torch::Device device) override {
    optimizer_.load(state, "optimizer", device);
    baseline_.load(state);
    kl_weight_ = state.real("kl_weight");
    rate_ = state.real("rate");
  }

 private:
  // What all epochs on one batch share.
  struct Batch {
    static constexpr std::size_t kMostShards = 64;
    explicit Batch(const Samples& all) : samples(all) {}

    double divergence_per_decision() const {
      double sum = 0;
      for (const double value : divergences) sum += value;
      return sum / static_cast<double>(samples.size() * samples.actions.size(1));
    }

    const Samples& samples;
    std::once_flag weighed;
    torch::Tensor advantages;
    std::vector<torch::Tensor> log_probs{kMostShards};  // by shard, before the round
    std::vector<std::vector<torch::Tensor>> distributions{kMostShards};
    std::vector<double> divergences = std::vector<double>(kMostShards);  // by shard: the sum
  };

  torch::Tensor weigh(const std::vector<Outcome>& outcomes, UpdateReport& report) const {
    std::vector<double> costs;
    for (const Outcome& outcome : outcomes) costs.push_back(costs_(outcome));
    const auto count = static_cast<double>(costs.size());
    for (const double cost : costs) report.mean_cost += cost / count;
    report.baseline = baseline_.value(report.mean_cost);
    double deviation = 1;
    if (settings_.normalize_advantage) {
      double squares = 0;
      for (const double cost : costs) squares += std::pow(cost - report.baseline, 2) / count;
      deviation = std::max({std::sqrt(squares), kSmallestDeviation * report.mean_cost, 1e-12});
    }
    torch::Tensor advantages = torch::empty({static_cast<std::int64_t>(costs.size())});
    auto values = advantages.accessor<float, 1>();
    for (std::size_t i = 0; i < costs.size(); ++i) {
      values[static_cast<std::int64_t>(i)] =
          static_cast<float>((report.baseline - costs[i]) / deviation);
    }
    return advantages;
  }

  torch::Tensor loss(Batch& batch, const Scores& scores, const Shard& shard, bool first) const {
    const auto index = static_cast<std::size_t>(shard.index);
    if (first) {
      batch.log_probs[index] = scores.log_probs.detach();
      for (const torch::Tensor& tensor : scores.distributions) {
        batch.distributions[index].push_back(tensor.detach());
      }
    }
    const double share =
        static_cast<double>(shard.count) / static_cast<double>(batch.samples.size());
    const torch::Tensor advantage =
        batch.advantages.slice(0, shard.first, shard.first + shard.count)
            .to(scores.log_probs.device())
            .unsqueeze(1);
    const torch::Tensor ratio = (scores.log_probs - batch.log_probs[index]).exp();
    const torch::Tensor kl = divergence(batch.distributions[index], scores.distributions);
    batch.divergences[index] = kl.item<double>() * static_cast<double>(shard.count);
    torch::Tensor gain;
    if (settings_.clip > 0) {
      const torch::Tensor clipped = ratio.clamp(1 - settings_.clip, 1 + settings_.clip);
      gain = torch::minimum(ratio * advantage, clipped * advantage).sum(1).mean();
    } else {
      gain = (ratio * advantage).sum(1).mean() - kl_weight_ * kl;
    }
    const auto decisions = static_cast<double>(scores.log_probs.size(1));
    return -share * (gain + settings_.entropy_weight * decisions * scores.entropy);
  }

  void adapt(const UpdateReport& report) {
    if (settings_.kl_share > 0) {
      const double wanted = settings_.kl_share * report.entropy;
      if (report.kl > 2 * wanted) rate_ /= kRateStep;
      if (report.kl < wanted / 2) rate_ *= kRateStep;
      rate_ = std::clamp(rate_, 1 / kRateRange, kRateRange);
    }
    if (report.kl > 1.5 * settings_.kl_target) kl_weight_ *= 2;
    if (report.kl < settings_.kl_target / 1.5) kl_weight_ /= 2;
    kl_weight_ = std::clamp(kl_weight_, settings_.kl_weight / kWeightRange,
                            settings_.kl_weight * kWeightRange);
  }

  PpoSettings settings_;
  Costs costs_;
  Optimizer optimizer_;
  MovingBaseline baseline_;
  double kl_weight_;
  double rate_ = 1;  // times the optimizer's learning rate
};

}  // namespace

LearnerPtr ppo(const Problem& problem, const PpoSettings& settings) {
  return std::make_shared<Ppo>(problem, settings);
}

}  // namespace emplace::learn
