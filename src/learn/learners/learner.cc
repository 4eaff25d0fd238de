#include "learn/learners/learner.h"

#include <algorithm>
#include <chrono>

#include "learn/nn/deadline.h"
#include "learn/nn/single_thread.h"

namespace emplace::learn {

const std::vector<SampleOutcome>& PendingOutcomes::get() {
  if (outcomes_.valid()) {
    const auto begin = std::chrono::steady_clock::now();
    values_ = outcomes_.get();
    waited_seconds_ =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return values_;
}

Gradient gradient_of(Policy& policy, const Samples& samples, int threads, const ShardLoss& loss) {
  const std::int64_t shards = std::min(policy.shards(), samples.size());
  const std::vector<torch::Tensor> parameters = policy.parameters().tensors();
  std::vector<std::vector<torch::Tensor>> gradients(static_cast<std::size_t>(shards));
  std::vector<double> entropies(static_cast<std::size_t>(shards));
  parallel_for_tensors(static_cast<std::size_t>(shards), threads, [&](std::size_t i) {
    Shard shard;
    shard.index = static_cast<std::int64_t>(i);
    shard.first = shard.index * samples.size() / shards;
    shard.count = (shard.index + 1) * samples.size() / shards - shard.first;
    check_time();
    const Scores scores = policy.score(samples.slice(shard.first, shard.count));
    entropies[i] = scores.entropy.item<double>() * static_cast<double>(shard.count);
    gradients[i] = torch::autograd::grad({loss(scores, shard)}, parameters, {}, false, false,
                                         /*allow_unused=*/true);
  });
  Gradient result;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    torch::Tensor sum = torch::zeros_like(parameters[p]);
    for (const auto& gradient : gradients) {
      if (gradient[p].defined()) sum += gradient[p];
    }
    result.by_parameter.push_back(sum.detach());
  }
  for (const double entropy : entropies) result.entropy += entropy;
  result.entropy /= static_cast<double>(samples.size());
  return result;
}

}  // namespace emplace::learn
