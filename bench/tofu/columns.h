// What becomes of a model under each way of training it that Tofu's evaluation compares.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <emplace/problem.h>

#include "base/units.h"

#include "tofu/grid.h"

namespace emplace::tofu {

// One batch, one way.
struct Trial {
  std::int64_t batch = 0;
  std::int64_t replicas = 1;  // that each work on such a batch
  Nanoseconds step = 0;
  Bytes moved = 0;  // in a step
  Bytes peak = 0;   // of the fullest device
  bool fits = false;
  double search_seconds = 0;  // of processor time, for the plan or the placement

  double samples_per_second() const;
};

struct Settings {
  // For searches that do not end by themselves: whichever is reached first.
  std::int64_t plans = 8;
  std::int64_t placements = 1000;
  double seconds = 25;
  InPlace in_place = InPlace::kSums;
};

// The columns: ideal, small-batch, swap, expert, auto, and every partition method by its key.
// Throws an Error for another.
Trial try_batch(const GridModel& model, const Machine& machine, const std::string& column,
                std::int64_t batch, const Settings& settings);

// At the batch with the most samples a second of those that fit. Doubles until one does not, or is
// above the largest that is tried, then halves the distance until it is within an eighth. Nothing
// where not even one sample fits.
std::optional<Trial> best_batch(std::int64_t first, std::int64_t most,
                                const std::function<Trial(std::int64_t)>& at);

// Seconds that finding Tofu's plan takes with and without coarsening and recursion; nothing where
// it is not found within the limit. Without recursion all levels are decided at once.
struct SearchTime {
  std::optional<double> seconds = std::nullopt;
  std::int64_t op_classes = 0;
  Bytes cost = 0;  // by Tofu's costs
};
SearchTime search_time(const GridModel& model, const Machine& machine, bool coarsening,
                       bool recursion, double limit_seconds);

}  // namespace emplace::tofu
