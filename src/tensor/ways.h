// Ways to cut a tensor, or an operator's variables, on the levels of the workers' tree.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "tensor/plan.h"

namespace emplace {

// What is cut, where that is allowed, and for whom.
struct Cuttable {
  tdl::Region whole;
  std::vector<std::int8_t> allowed;  // dimensions
  const Workers& workers;
  // Which of the ways that leave nobody without a part count; empty: all.
  std::function<bool(const Cuts&)> accepts = {};
};

// Those that cuts can name.
std::vector<std::int8_t> variables_to_cut(const tdl::Description& description);
std::vector<std::int8_t> all_dimensions(std::size_t rank);

inline constexpr std::size_t kAllWays = std::numeric_limits<std::size_t>::max();

// The ways to cut it that begin as `prefix` does, the first `most` of them: their number grows as
// a power of that of the levels. Where `spare` is not set, a level is left uncut only if nothing
// can be cut there.
std::vector<Cuts> ways_to_cut(const Cuttable& what, bool spare, const Cuts& prefix = {},
                              std::size_t most = kAllWays);

// Those that cut one dimension on all levels from the given one on, and the uncut one, last.
std::vector<Cuts> ways_along_one(const Cuttable& what, std::size_t first_level = 0);

// Those that differ on one level at most from one of the `known`; in the order of all ways.
std::vector<Cuts> ways_near(const Cuttable& what, const std::set<Cuts>& known);

}  // namespace emplace
