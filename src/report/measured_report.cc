#include "report/measured_report.h"

#include <nlohmann/json.hpp>

#include "report/table.h"

namespace emplace {

std::string to_text(const std::vector<MeasuredCandidate>& candidates) {
  Table table({{"executed"},
               {"measured", Table::Align::kRight},
               {"half between", Table::Align::kRight},
               {"predicted", Table::Align::kRight},
               {"ratio", Table::Align::kRight}});
  for (const MeasuredCandidate& candidate : candidates) {
    if (candidate.failed()) {
      table.add({candidate.solution.origin, "failed", "", format_time(candidate.predicted), ""});
      continue;
    }
    const TimeSpread& step = candidate.measured;
    table.add({candidate.solution.origin, format_time(step.median),
               fmt::format("{} and {}", format_time(step.low), format_time(step.high)),
               format_time(candidate.predicted),
               fmt::format("{:.3f}", static_cast<double>(candidate.predicted) /
                                         static_cast<double>(step.median))});
  }
  std::string text = table.to_string();
  for (const MeasuredCandidate& candidate : candidates) {
    if (candidate.failed()) text += fmt::format("failed: {}\n", candidate.failure);
  }
  return text;
}

std::string with_measured(const std::string& object,
                          const std::vector<MeasuredCandidate>& candidates) {
  if (candidates.empty()) return object;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MeasuredCandidate& candidate : candidates) {
    nlohmann::ordered_json entry{{"origin", candidate.solution.origin},
                                 {"predicted_ms", static_cast<double>(candidate.predicted) / 1e6}};
    if (candidate.failed()) {
      entry["failure"] = candidate.failure;
    } else {
      entry["measured_ms"] = static_cast<double>(candidate.measured.median) / 1e6;
      entry["measured_ms_quartiles"] = {static_cast<double>(candidate.measured.low) / 1e6,
                                        static_cast<double>(candidate.measured.high) / 1e6};
    }
    list.push_back(std::move(entry));
  }
  auto whole = nlohmann::ordered_json::parse(object);
  whole["measured"] = std::move(list);
  return whole.dump();
}

}  // namespace emplace
