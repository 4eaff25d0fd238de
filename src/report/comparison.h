// Several placers' answers to one problem, as data, as a table and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/statistics.h"
#include "run/portfolio.h"
#include "run/single_device.h"
#include "run/whole_modules.h"

namespace emplace {

// What a comparison shows of a result; its timeline is not kept.
struct ComparisonRow {
  std::string placer;  // its spec
  std::string family;
  std::string scheduler;
  std::uint64_t seed = 0;
  Nanoseconds time = 0;  // step time or period
  double ratio_to_bound = 0;
  bool fits = false;
  double fullest_memory = 0;  // of the device nearest to its limit, 0..1 and above
  Bytes short_by = 0;         // in all
  std::int64_t transfers = 0;
  Bytes transfer_bytes = 0;
  std::int64_t evaluations = 0;
  Rates rates;
  double seconds = 0;  // that the search took
  std::string json;    // the object of docs/formats.md
};

// A placer with an order of ops over its seeds. Times are of the runs that fit.
struct ComparisonSummary {
  std::string placer;
  std::string scheduler;
  std::size_t runs = 0;
  std::size_t fitting = 0;
  MeanInterval time = {};  // of nanoseconds; of the mean, at 95 % by Student's t
  Nanoseconds best = 0;
  Nanoseconds worst = 0;
  double seconds = 0;            // that a search took, in the mean
  std::int64_t evaluations = 0;  // that a search made, in the mean
};

struct Comparison {
  std::vector<ComparisonRow> rows;  // best first
  Assessment best;
  SingleDevices single;
  std::size_t asked = 0;  // runs; fewer may have given a result
  std::size_t done = 0;
  std::optional<WholeModules> whole_modules = std::nullopt;  // of the best, where they are kept so
};

// What the rows' times are: in words, in JSON and CSV, and whether they have a bound.
struct TimeNames {
  std::string_view quantity = "step time";
  std::string_view field = "step_ns";
  bool bounded = true;
};
TimeNames names_of(const Objective& objective);

Comparison compare(const SubsetProblems& problems, PortfolioResult results, std::size_t asked);

// What it comes to: the winner, how far from the bound, how much faster than one device and than
// the best heuristic.
std::string headline(const Comparison& comparison);
std::string to_json(const Comparison& comparison);

std::string to_table(const std::vector<ComparisonRow>& rows, const TimeNames& names,
                     bool with_seeds);
// By the mean, those that always fit first.
std::vector<ComparisonSummary> summarize(const std::vector<ComparisonRow>& rows);
std::string summary_table(const std::vector<ComparisonRow>& rows, const TimeNames& names);
// The summaries under "placers", and under "runs" each row's object, without the outer braces.
std::string placers_json(const std::vector<ComparisonRow>& rows, const TimeNames& names);
std::string runs_json(const std::vector<ComparisonRow>& rows);
// A line for each run, beginning with these columns, which are the same in all.
std::string to_csv(const std::vector<ComparisonRow>& rows, const TimeNames& names,
                   const std::vector<std::pair<std::string, std::string>>& first);

}  // namespace emplace
