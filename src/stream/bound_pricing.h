// Pricing: of all contents of one device of a class, the one worth most. A dynamic program over a
// path decomposition, whose table gives for each state and value the least load that reaches it.
// Values are integers, so that the table is exact and its bounds hold without any rounding.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/units.h"

#include "stream/bound_contents.h"
#include "stream/bound_paths.h"

namespace emplace {

// What units are worth, none negative; and what traffic takes off: `price` for every
// 2^kTrafficShift nanoseconds.
struct ContentValues {
  static constexpr int kTrafficShift = 40;
  std::vector<std::int32_t> units;
  std::int64_t price = 0;
};

// Load and traffic are as the table counts them: too low where nets are eased or the load does not
// fit the table exactly. Memory may be above the capacity, as it is counted in parts.
struct PricedContent {
  std::vector<std::uint32_t> units;  // ascending
  Nanoseconds load = 0;
  Nanoseconds traffic = 0;
};

class ContentPricer {
 public:
  // For contents whose load is within the limit. A table for a `top` of `usual_top` has at most
  // `max_cells` cells: where there are too many states, nets are eased (bound_paths.h).
  ContentPricer(const ContentGraph& graph, Bytes capacity, Nanoseconds limit, std::size_t max_cells,
                std::int32_t usual_top);

  std::uint32_t nets_eased() const { return paths_.nets_eased; }
  bool counts_memory() const { return rows_ > 1; }  // it can run out
  std::size_t num_lists() const {
    return first_.back() * rows_;
  }  // of the table, each of `top` cells
  // The largest `top` for which a table has at most max_cells cells.
  std::int64_t largest_top() const;

  // Fills the table. Contents worth more than `top` count as worth `top`. False when `stop` said
  // so; there is no table then.
  bool run(ContentValues values, std::int32_t top, const std::function<bool()>& stop);

  // No content whose load is within `load`, itself within the limit, is worth more, unless this is
  // `top`.
  std::int32_t most(Nanoseconds load) const;
  // A content worth that.
  PricedContent content(Nanoseconds load) const;

 private:
  std::int32_t cost(const PathMove& move) const;
  std::int64_t gain(std::uint32_t unit, const PathMove& move) const;
  std::int64_t source_value(std::int64_t value, std::int64_t gain) const;
  std::size_t list(std::size_t step, std::size_t state, std::uint32_t row) const {
    return (first_[step] + state) * rows_ + row;
  }
  std::int32_t* cells(std::size_t list) { return cells_.data() + list * width_; }
  const std::int32_t* cells(std::size_t list) const { return cells_.data() + list * width_; }
  bool memory_can_run_out(Bytes capacity);
  void count_states();
  void fill(std::size_t step, std::size_t state, std::uint32_t row);

  const ContentGraph& graph_;
  Nanoseconds limit_;
  std::size_t max_cells_;
  ContentPaths paths_;
  int load_shift_ = 0;  // loads in the table are in units of 2^load_shift_ ns, rounded down
  std::int32_t scaled_limit_ = 0;
  std::vector<std::size_t> first_;  // by step, counted from the start: its first state
  // Memory is counted in whole parts of the capacity, rounded down: row r is for at most r parts.
  std::uint32_t rows_ = 1;
  std::vector<std::uint32_t> parts_;  // by unit

  ContentValues values_;
  std::int32_t top_ = 0;
  std::size_t width_ = 0;
  std::vector<std::int32_t> cells_;  // by list and value: the least load for at least the value
  std::vector<std::int32_t> reach_;  // by list: the largest value within the limit; -1: none
};

}  // namespace emplace
