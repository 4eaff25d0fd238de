#include "run/placer_runs.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

#include "placers/all.h"

namespace emplace {
namespace {

std::vector<std::string> scheduler_keys(const std::string& text) {
  std::vector<std::string> known{std::string(kOwnSchedule)};
  for (const SchedulerInfo& scheduler : schedulers()) known.push_back(scheduler.key);
  if (text == "all") return known;
  known.emplace_back(kBestSchedule);
  std::vector<std::string> keys = split_specs(text);
  for (const std::string& key : keys) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail_option("unknown scheduler '{}'{}; expected one of: {}, all", key, suggestion(key, known),
                  fmt::join(known, ", "));
    }
  }
  return keys;
}

std::vector<MethodSpec> placer_specs(const std::string& text) {
  std::vector<MethodSpec> specs;
  for (const std::string& spec : split_specs(text)) {
    const std::size_t before = specs.size();
    for (const MethodInfo* info : all_placers().list()) {
      // All that run without being told more.
      const bool of_all = spec == "all" && info->family != "external";
      if (of_all || spec == info->family) specs.push_back({info->key, {}});
    }
    if (specs.size() > before) continue;
    specs.push_back(MethodSpec::parse(spec));
    all_placers().make(specs.back());  // refuse a bad option before the first one runs
  }
  return specs;
}

}  // namespace

std::vector<PlacerRun> make_runs(const std::string& placers, const std::string& schedulers,
                                 std::uint64_t first_seed, int seeds) {
  std::vector<PlacerRun> runs;
  for (const MethodSpec& spec : placer_specs(placers)) {
    const int repeats = all_placers().info(spec.key).randomized ? seeds : 1;
    for (int i = 0; i < repeats; ++i) {
      for (const std::string& scheduler : scheduler_keys(schedulers)) {
        runs.push_back({spec, scheduler, first_seed + static_cast<std::uint64_t>(i)});
      }
    }
  }
  return runs;
}

std::string common_scheduler(const std::vector<PlacerRun>& runs) {
  const std::string& first = runs.front().scheduler;
  const bool common = std::all_of(runs.begin(), runs.end(),
                                  [&](const PlacerRun& run) { return run.scheduler == first; });
  return common && first != kBestSchedule ? first : std::string(kOwnSchedule);
}

}  // namespace emplace
