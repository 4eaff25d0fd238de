#include "support/strategy_checker.h"

#include <map>

#include <nlohmann/json.hpp>
#include <zlib.h>

namespace emplace::testing {
namespace {

using Json = nlohmann::json;
constexpr std::int64_t kNever = 1'000'000'000'000'000'000;

void add(std::int64_t cost, CheckedSelection& checked) {
  checked.cost += cost;
  checked.forbidden |= cost >= kNever;
}

}  // namespace

CheckedSelection check_selection(const std::string& text,
                                 const std::vector<std::int32_t>& strategies) {
  CheckedSelection checked;
  const Json problem = Json::parse(text)["problem"];
  const Json& costs = problem["nodes"]["costs"];
  const Json& usages = problem["nodes"]["usages"];
  if (strategies.size() != costs.size()) {
    checked.error = "not one strategy a node";
    return checked;
  }
  std::map<std::int64_t, Integer> change;  // of the usage, at each time where it changes
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    if (strategies[i] < 0 || static_cast<std::size_t>(strategies[i]) >= costs[i].size()) {
      checked.error = "no such strategy of node " + std::to_string(i);
      return checked;
    }
    add(costs[i][strategies[i]].get<std::int64_t>(), checked);
    const Json interval =
        problem["nodes"].contains("intervals") ? problem["nodes"]["intervals"][i] : Json();
    if (!interval.is_array() || interval.size() != 2) continue;
    if (interval[0].get<std::int64_t>() >= interval[1].get<std::int64_t>()) continue;
    const auto usage = usages[i][strategies[i]].get<std::int64_t>();
    change[interval[0]] += usage;
    change[interval[1]] -= usage;
  }
  const Json& ends = problem["edges"]["nodes"];
  for (std::size_t e = 0; e < ends.size(); ++e) {
    const std::size_t a = ends[e][0];
    const std::size_t b = ends[e][1];
    const std::size_t at = strategies[a] * costs[b].size() + strategies[b];
    add(problem["edges"]["costs"][e][at].get<std::int64_t>(), checked);
  }
  if (!problem.contains("usage_limit") || problem["usage_limit"].is_null()) return checked;
  Integer now = 0;
  for (const auto& [time, more] : change) {
    now += more;
    if (now > problem["usage_limit"].get<std::int64_t>()) checked.fits = false;
  }
  return checked;
}

std::string read_plain(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  std::vector<char> buffer(1 << 20);
  for (int count = 0; (count = gzread(file, buffer.data(), 1 << 20)) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  gzclose(file);
  return text;
}

}  // namespace emplace::testing
