#include "run/least_time.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/units.h"

namespace emplace {
namespace {

// Seconds for a million ops on one core of a server, all in proportion to the ops: of what is built
// or merged before the first answer, and cannot be left half done (bench/budgets.py). Placers that
// learn give it up in time.
struct LeastTime {
  std::string_view placer;
  double seconds_a_million;
};
constexpr LeastTime kLeastTimes[] = {
    {"dp", 7}, {"m_sct", 3.6}, {"ip", 1.8}, {"m_etf", 1.8}, {"heft", 1.7}};
// What nobody calls late.
constexpr double kShareOver = 1.1;
constexpr double kSecondsOver = 0.2;

}  // namespace

std::vector<std::string> runs_beyond_time(const std::vector<PlacerRun>& runs, OpId num_ops,
                                          const Budget& budget) {
  if (!budget.seconds) return {};
  std::set<std::string> seen;
  std::vector<std::string> texts;
  for (const PlacerRun& run : runs) {
    const auto* known =
        std::find_if(std::begin(kLeastTimes), std::end(kLeastTimes),
                     [&](const LeastTime& least) { return least.placer == run.placer.key; });
    if (known == std::end(kLeastTimes) || !seen.insert(run.placer.key).second) continue;
    const double least = known->seconds_a_million * static_cast<double>(num_ops) / 1e6;
    if (least <= kShareOver * *budget.seconds + kSecondsOver) continue;
    texts.push_back(fmt::format(
        "{} takes about {:.2g} s on {} ops before its first answer, longer than the {:.3g} s it "
        "has",
        run.placer.key, least, format_count(static_cast<std::int64_t>(num_ops)), *budget.seconds));
  }
  return texts;
}

}  // namespace emplace
