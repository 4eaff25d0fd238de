// Several placers' answers to one problem, as data, as a table and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run/portfolio.h"
#include "run/single_device.h"

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
  Rates rates;
  double seconds = 0;  // that the search took
  std::string json;    // the object of docs/formats.md
};

struct Comparison {
  std::vector<ComparisonRow> rows;  // best first
  Assessment best;
  SingleDevices single;
  std::size_t asked = 0;  // runs; fewer may have given a result
  std::size_t done = 0;
};

// `best_orders`: of each placer and seed, the best order of ops alone.
Comparison compare(const SubsetProblems& problems, PortfolioResult results, std::size_t asked,
                   bool best_orders);

// What it comes to: the winner, how far from the bound, how much faster than one device and than
// the best heuristic.
std::string headline(const Comparison& comparison);
std::string to_table(const Comparison& comparison, bool with_seeds);
std::string to_json(const Comparison& comparison);

}  // namespace emplace
