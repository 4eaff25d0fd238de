// A directed acyclic graph whose nodes are merged one pair at a time, and stays one.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "learn/units/precedence.h"

namespace emplace::learn {

// Keeps a topological order of the nodes: a path from a to b, a before b, leads through places
// between theirs alone. So whether a merge would close a cycle is seen by searching that window,
// and only what the search meets changes places (as in Pearce and Kelly, "A dynamic topological
// sort algorithm for directed acyclic graphs", JEA 2006).
class AcyclicOrder {
 public:
  explicit AcyclicOrder(const Precedence& precedence);

  // Whether no path but a direct edge connects them. May say no where the search would take long;
  // never where they are neighbours in the order.
  bool may_merge(std::uint32_t a, std::uint32_t b);
  // `other` becomes part of `kept`; may_merge was asked about the two last, and said yes.
  void merge(std::uint32_t kept, std::uint32_t other);

  std::uint32_t place(std::uint32_t node) const { return place_[node]; }

 private:
  // From `from` along `lists`, through places strictly between the two; false: `to` was reached by
  // way of others, or the search is too long.
  bool search(std::uint32_t from, std::uint32_t to,
              const std::vector<std::set<std::uint32_t>>& lists, std::vector<std::uint32_t>& met);

  std::vector<std::set<std::uint32_t>> before_;
  std::vector<std::set<std::uint32_t>> after_;
  std::vector<std::uint32_t> place_;  // distinct
  // Of the last search: what the first of the two leads to, and what leads to the second.
  std::vector<std::uint32_t> met_after_;
  std::vector<std::uint32_t> met_before_;
  std::vector<std::uint64_t> seen_;  // by node: the search that saw it last
  std::uint64_t searches_ = 0;
};

}  // namespace emplace::learn
