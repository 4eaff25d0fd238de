#include "report/shortfall.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/units.h"

#include "report/explanation.h"
#include "report/prose.h"
#include "run/portfolio.h"
#include "run/single_device.h"

namespace emplace {
namespace {

// How many devices of the short ones' kind would hold what those of that kind hold now.
std::string advise_on_count(const Assessment& assessment) {
  const Cluster& cluster = assessment.problem().cluster();
  struct KindCount {
    Bytes used = 0;
    std::int64_t count = 0;
    Bytes capacity = kUnlimited;  // the least of the short ones
  };
  std::map<std::string, KindCount> kinds;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    const Device& device = cluster.device(id);
    KindCount& kind = kinds[device.kind];
    kind.used += assessment.used(id);
    kind.count += 1;
    if (assessment.used(id) > device.memory) kind.capacity = std::min(kind.capacity, device.memory);
  }
  std::string text;
  for (const auto& [name, kind] : kinds) {
    if (kind.capacity == 0 || kind.capacity == kUnlimited) continue;
    const std::int64_t enough = (kind.used - 1) / kind.capacity + 1;
    if (enough <= kind.count) continue;
    text += wrapped(fmt::format("or with at least {} devices of kind {} instead of {}", enough,
                                name, kind.count));
  }
  return text;
}

// Quick placements, and one device.
std::vector<Solution> quick_tries(const SubsetProblems& problems) {
  std::vector<Solution> tries;
  for (const RunResult& split : quick_splits(problems.whole(), problems.objective())) {
    tries.push_back({split.result.placement, split.result.schedule, split.evaluation,
                     split.run.placer.to_string()});
  }
  Evaluator evaluator(problems.whole(), problems.objective());
  if (const auto one = try_single_devices(evaluator).fastest) {
    const Problem& problem = problems.whole()->problem();
    tries.push_back({Placement(problem.num_ops(), one->device),
                     {},
                     one->value,
                     fmt::format("everything on {}", problem.cluster().device(one->device).name)});
  }
  return tries;
}

}  // namespace

std::string describe_hopeless(const SubsetProblems& problems, bool could_recompute) {
  const std::vector<Solution> tries = quick_tries(problems);
  if (tries.empty()) return {};
  const Solution& nearest =
      *std::min_element(tries.begin(), tries.end(),
                        [](const Solution& a, const Solution& b) { return a.value < b.value; });
  const Assessor assessor(problems.whole(), problems.objective(), {.step = 1, .reason = {}},
                          StepTerms{});
  const Assessment assessment = assessor.assess(nearest.placement, nearest.schedule);
  const Explanation explanation = explain(assessment, {}, could_recompute);
  return wrapped(fmt::format("of a few quick placements, this is nearest: {}", nearest.origin)) +
         describe_shortfall(assessment) + advise_on_shortfall(explanation, assessment);
}

std::string describe_shortfall(const Assessment& assessment) {
  std::string text;
  for (DeviceId id = 0; id < assessment.problem().num_devices(); ++id) {
    const Device& device = assessment.problem().cluster().device(id);
    if (assessment.used(id) <= device.memory) continue;
    text += fmt::format(" does not fit: '{}' needs {} of its {}, {} short\n", device.name,
                        format_bytes(assessment.used(id)), format_bytes(device.memory),
                        format_bytes(assessment.used(id) - device.memory));
  }
  return text;
}

std::string advise_on_shortfall(const Explanation& explanation, const Assessment& assessment) {
  const Cluster& cluster = assessment.problem().cluster();
  Bytes needed = 0;
  Bytes there = 0;
  double factor = 1;
  bool some_has_none = false;
  bool tensors = true;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    const Bytes capacity = cluster.device(id).memory;
    const Bytes used = assessment.used(id);
    needed += used;
    there = capacity == kUnlimited || there == kUnlimited ? kUnlimited : there + capacity;
    if (used <= capacity) continue;
    some_has_none = some_has_none || capacity == 0;
    factor = std::max(factor, static_cast<double>(used) / static_cast<double>(capacity));
    tensors = tensors && explanation.contents[id].resident < capacity;
  }
  std::string text;
  if (there != kUnlimited) {
    text += wrapped(fmt::format("in all, this placement needs {}; all devices together have {}",
                                format_bytes(needed), format_bytes(there)));
  }
  if (!some_has_none) {
    text += wrapped(fmt::format("it would fit with {:.2f} times the memory on every device",
                                std::ceil(factor * 100) / 100));
  }
  text += advise_on_count(assessment);
  if (!tensors) return text;
  return text +
         wrapped(fmt::format(
             "what is short is room for tensors, not parameters: a smaller batch{} would help",
             explanation.could_recompute
                 ? ", or recomputing activations (--recompute), which trades time for memory,"
                 : ""));
}

}  // namespace emplace
