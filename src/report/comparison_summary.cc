// Comparisons over seeds, and for programs.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "report/comparison.h"
#include "report/prose.h"
#include "report/table.h"
#include "report/whole_modules.h"

namespace emplace {
namespace {

using Align = Table::Align;

using SummaryJson = nlohmann::ordered_json;

double half_width(const MeanInterval& interval) {
  return interval.high - interval.mean;
}

ComparisonSummary summary_of(const std::vector<const ComparisonRow*>& rows) {
  ComparisonSummary summary{.placer = rows.front()->placer, .scheduler = rows.front()->scheduler};
  summary.runs = rows.size();
  std::vector<double> times;
  double evaluations = 0;
  for (const ComparisonRow* row : rows) {
    summary.seconds += row->seconds / static_cast<double>(rows.size());
    evaluations += static_cast<double>(row->evaluations) / static_cast<double>(rows.size());
    if (!row->fits) continue;
    summary.best = times.empty() ? row->time : std::min(summary.best, row->time);
    summary.worst = std::max(summary.worst, row->time);
    times.push_back(static_cast<double>(row->time));
  }
  summary.evaluations = std::llround(evaluations);
  summary.fitting = times.size();
  if (!times.empty()) summary.time = mean_interval(times);
  return summary;
}

bool comes_first(const ComparisonSummary& a, const ComparisonSummary& b) {
  const auto failing = [](const ComparisonSummary& summary) {
    return static_cast<double>(summary.runs - summary.fitting) / static_cast<double>(summary.runs);
  };
  if (failing(a) != failing(b)) return failing(a) < failing(b);
  return a.time.mean < b.time.mean;
}

// Quoted where it must be.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

SummaryJson summary_json(const ComparisonSummary& summary, const std::string& time) {
  const bool any = summary.fitting > 0;
  SummaryJson json{{"placer", summary.placer},
                   {"scheduler", summary.scheduler},
                   {"runs", summary.runs},
                   {"fitting", summary.fitting}};
  json["mean_" + time] = any ? SummaryJson(summary.time.mean) : SummaryJson();
  const bool has_interval = summary.fitting > 1;
  json["interval_" + time] =
      has_interval ? SummaryJson{summary.time.low, summary.time.high} : SummaryJson();
  json["best_" + time] = any ? SummaryJson(summary.best) : SummaryJson();
  json["worst_" + time] = any ? SummaryJson(summary.worst) : SummaryJson();
  json["mean_evaluations"] = summary.evaluations;
  json["mean_seconds"] = summary.seconds;
  return json;
}

}  // namespace

std::vector<ComparisonSummary> summarize(const std::vector<ComparisonRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<const ComparisonRow*>> groups;
  for (const ComparisonRow& row : rows) groups[{row.placer, row.scheduler}].push_back(&row);
  std::vector<ComparisonSummary> summaries;
  for (const auto& [key, own] : groups) summaries.push_back(summary_of(own));
  std::stable_sort(summaries.begin(), summaries.end(), comes_first);
  return summaries;
}

std::string summary_table(const std::vector<ComparisonRow>& rows, const TimeNames& names) {
  Table table({{"placer"},
               {"order"},
               {"runs", Align::kRight},
               {"fit", Align::kRight},
               {fmt::format("mean {}", names.quantity), Align::kRight},
               {"95 %", Align::kRight},
               {"best", Align::kRight},
               {"worst", Align::kRight},
               {"evaluations", Align::kRight},
               {"search", Align::kRight}});
  for (const ComparisonSummary& summary : summarize(rows)) {
    const bool any = summary.fitting > 0;
    const auto nanoseconds = [](double time) {
      return static_cast<Nanoseconds>(std::llround(time));
    };
    table.add(
        {summary.placer, summary.scheduler, fmt::format("{}", summary.runs),
         fmt::format("{}", summary.fitting),
         any ? format_time(nanoseconds(summary.time.mean)) : "none fits",
         summary.fitting > 1 ? "+- " + format_time(nanoseconds(half_width(summary.time))) : "",
         any ? format_time(summary.best) : "", any ? format_time(summary.worst) : "",
         format_count(summary.evaluations), search_time(summary.seconds)});
  }
  return table.to_string() +
         "mean, best and worst: of the runs that fit; 95 %: interval of the mean by Student's t\n";
}

std::string placers_json(const std::vector<ComparisonRow>& rows, const TimeNames& names) {
  SummaryJson placers = SummaryJson::array();
  for (const ComparisonSummary& summary : summarize(rows)) {
    placers.push_back(summary_json(summary, std::string(names.field)));
  }
  return "\"placers\": " + placers.dump();
}

std::string runs_json(const std::vector<ComparisonRow>& rows) {
  std::string text = "\"runs\": [";
  for (const ComparisonRow& row : rows) text += (text.ends_with("[") ? "\n" : ",\n") + row.json;
  return text + "]";
}

std::string to_json(const Comparison& comparison) {
  const TimeNames names = names_of(comparison.best.objective);
  std::string text = "{" + placers_json(comparison.rows, names) + ",\n";
  if (comparison.whole_modules) {
    const std::string time(names.field);
    text += "\"whole_modules\": " + to_json(*comparison.whole_modules, time.c_str()).dump() + ",\n";
  }
  return text + runs_json(comparison.rows) + "}\n";
}

std::string to_csv(const std::vector<ComparisonRow>& rows, const TimeNames& names,
                   const std::vector<std::pair<std::string, std::string>>& first) {
  std::string text;
  std::string constant;
  for (const auto& [name, value] : first) {
    text += name + ",";
    constant += csv_cell(value) + ",";
  }
  text += fmt::format(
      "placer,family,scheduler,seed,{},fits,{}fullest_memory,shortfall_bytes,"
      "transfers,transfer_bytes,evaluations,seconds\n",
      names.field, names.bounded ? "ratio_to_bound," : "");
  for (const ComparisonRow& row : rows) {
    text += constant;
    text +=
        fmt::format("{},{},{},{},{},{},{}{},{},{},{},{},{}\n", csv_cell(row.placer), row.family,
                    row.scheduler, row.seed, row.time, row.fits,
                    names.bounded ? fmt::format("{},", row.ratio_to_bound) : "", row.fullest_memory,
                    row.short_by, row.transfers, row.transfer_bytes, row.evaluations, row.seconds);
  }
  return text;
}

}  // namespace emplace
