#include "learn/general/kinds.h"

#include "base/check.h"

#include "learn/general/attention_policy.h"
#include "learn/general/episode_agent.h"
#include "learn/general/policy_agent.h"
#include "learn/general/sequence_policy.h"
#include "learn/units/groupings.h"

namespace emplace::learn {
namespace {

// Advantages are in parts of their deviation, so costs of all models count alike.
constexpr CostSettings kCosts{.scale = CostScale::kLogarithm, .shortage = Shortage::kPenalty};

const PpoSettings kPractice{.batch = 16,
                            .epochs = 2,
                            .optimizer = {.learning_rate = 1e-2},
                            .cost = kCosts,
                            .entropy_weight = 0.001,
                            .clip = 0.2};

GeneralAgentPtr make_gdp(const Problem& problem, const GeneralNetwork& network,
                         const std::string& device, Rng& rng) {
  return policy_agent(problem,
                      general_attention_policy(group_by_colocation(problem), network, device, rng),
                      kPractice);
}

GeneralAgentPtr make_mars(const Problem& problem, const GeneralNetwork& network,
                          const std::string& device, Rng& rng) {
  return policy_agent(problem,
                      general_sequence_policy(group_by_colocation(problem), network, device, rng),
                      kPractice);
}

GeneralAgentPtr make_placeto(const Problem& problem, const GeneralNetwork& network,
                             const std::string& device, Rng& rng) {
  constexpr std::int64_t kUnits = 100;
  return episode_agent(group_to_size_acyclic(problem, kUnits), network,
                       {.runtime = {.logarithm = true}}, device, rng);
}

}  // namespace

GeneralAgentPtr make_agent(const std::string& kind, const Problem& problem,
                           const GeneralNetwork& network, const std::string& device, Rng& rng) {
  if (kind == "gdp") return make_gdp(problem, network, device, rng);
  if (kind == "mars") return make_mars(problem, network, device, rng);
  EMPLACE_CHECK(kind == "placeto");
  return make_placeto(problem, network, device, rng);
}

}  // namespace emplace::learn
