#include "learn/general/kinds.h"

#include <map>

#include "base/check.h"

#include "learn/general/attention_policy.h"
#include "learn/general/episode_pupil.h"
#include "learn/general/policy_pupil.h"
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

PupilPtr make_gdp(const Problem& problem, const GeneralNetwork& network, const std::string& device,
                  Rng& rng) {
  return policy_pupil(problem,
                      general_attention_policy(group_by_colocation(problem), network, device, rng),
                      kPractice);
}

PupilPtr make_mars(const Problem& problem, const GeneralNetwork& network, const std::string& device,
                   Rng& rng) {
  return policy_pupil(problem,
                      general_sequence_policy(group_by_colocation(problem), network, device, rng),
                      kPractice);
}

PupilPtr make_placeto(const Problem& problem, const GeneralNetwork& network,
                      const std::string& device, Rng& rng) {
  constexpr std::int64_t kUnits = 100;
  return episode_pupil(group_to_size(problem, kUnits), network, {.runtime = {.logarithm = true}},
                       device, rng);
}

using MakePupil = PupilPtr (*)(const Problem&, const GeneralNetwork&, const std::string&, Rng&);

const std::map<std::string, MakePupil>& makers() {
  static const std::map<std::string, MakePupil> table{
      {"gdp", make_gdp},
      {"mars", make_mars},
      {"placeto", make_placeto},
  };
  return table;
}

}  // namespace

const std::vector<std::string>& general_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> names;
    for (const auto& [name, make] : makers()) names.push_back(name);
    return names;
  }();
  return kinds;
}

PupilPtr make_pupil(const std::string& kind, const Problem& problem, const GeneralNetwork& network,
                    const std::string& device, Rng& rng) {
  const auto found = makers().find(kind);
  EMPLACE_CHECK(found != makers().end());
  return found->second(problem, network, device, rng);
}

}  // namespace emplace::learn
