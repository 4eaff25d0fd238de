// Placers run for measuring: what the constructive ones reach at their best, and what a search
// reaches when.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

#include "sim/simulator.h"

#include "placer/run.h"

#include "search/registry.h"

namespace emplace::bench {

// An answer and who gave it, in the best of all orders of its ops.
struct Answer {
  std::string name;  // "metis + pct"
  Evaluation value;
};

// Whether a placer ends by itself at once, rather than searching for as long as it may.
bool is_constructive(const MethodInfo& info);

// One placer with the best order; throws where the placer does.
Answer best_order(const std::shared_ptr<const Simulator>& simulator, const MethodSpec& placer);

// The best of every constructive placer but `except`, with every order, or in the order of this
// scheduler. Nothing where none gives an answer; the answer fits if any does.
std::optional<Answer> best_constructive(const std::shared_ptr<const Simulator>& simulator,
                                        std::string_view except = {},
                                        const std::string& scheduler = std::string(kBestSchedule));

struct Search {
  MethodSpec placer;
  std::uint64_t seed = 1;
  double seconds = 30;
  int threads = 2;
  std::optional<std::int64_t> evaluations = std::nullopt;  // in place of the seconds
  std::string scheduler{kOwnSchedule};
};

struct Improvement {
  double seconds = 0;
  Evaluation value;
};

struct SearchResult {
  RunResult run;
  std::vector<Improvement> history;  // of what the search told its incumbent

  // When the last improvement came; 0 where the search told of none.
  double last_improvement() const { return history.empty() ? 0 : history.back().seconds; }
  // The best known after so many seconds; nothing before the first.
  std::optional<Evaluation> after(double seconds) const;
};

SearchResult run_search(const std::shared_ptr<const Simulator>& simulator, const Search& search);

// Of an even number, the worse of the two in the middle. Not of nothing.
const SearchResult& median(std::span<const SearchResult> results);

// 0 of nothing.
double geometric_mean(std::span<const double> ratios);

double milliseconds(Nanoseconds time);

// "741.03", or "741.03 (no fit)".
std::string format_value(const Evaluation& value);

// "1.24", or "–" where there is none.
std::string format_ratio(std::optional<double> ratio, int digits = 3);

}  // namespace emplace::bench
