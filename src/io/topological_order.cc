#include "io/topological_order.h"

#include <algorithm>
#include <queue>

#include "base/check.h"
#include "base/csr.h"
#include "base/error.h"

namespace emplace {
namespace {

using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// Every node that still waits has a predecessor that still waits, so walking back meets itself.
[[noreturn]] void report_cycle(const Edges& edges, const std::vector<std::uint32_t>& waiting_for,
                               const std::function<std::string(std::uint32_t)>& name_of) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<std::uint32_t> before(waiting_for.size(), kNone);
  for (const auto& [from, to] : edges) {
    if (waiting_for[from] > 0 && before[to] == kNone) before[to] = from;
  }
  const auto start = std::find_if(waiting_for.begin(), waiting_for.end(),
                                  [](std::uint32_t count) { return count > 0; });
  auto at = static_cast<std::uint32_t>(start - waiting_for.begin());
  std::vector<bool> seen(waiting_for.size(), false);
  while (!seen[at]) {
    seen[at] = true;
    at = before[at];
    EMPLACE_CHECK(at != kNone);
  }
  std::vector<std::uint32_t> cycle;
  for (std::uint32_t node = at; cycle.empty() || node != at; node = before[node]) {
    cycle.push_back(node);
  }
  std::reverse(cycle.begin(), cycle.end());
  constexpr std::size_t kLongest = 8;
  std::string path;
  for (std::size_t i = 0; i < std::min(cycle.size(), kLongest); ++i) {
    path += name_of(cycle[i]) + " -> ";
  }
  if (cycle.size() > kLongest) path += "... -> ";
  fail_input("node {}: is part of a cycle: {}{}", name_of(cycle[0]), path, name_of(cycle[0]));
}

}  // namespace

std::vector<std::uint32_t> topological_order(
    std::size_t nodes, const Edges& edges,
    const std::function<std::string(std::uint32_t)>& name_of) {
  const Csr<std::uint32_t> successors = Csr<std::uint32_t>::from_pairs(nodes, edges);
  std::vector<std::uint32_t> waiting_for(nodes, 0);
  for (const auto& [from, to] : edges) ++waiting_for[to];
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (waiting_for[node] == 0) ready.push(node);
  }
  std::vector<std::uint32_t> order;
  order.reserve(nodes);
  while (!ready.empty()) {
    const std::uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const std::uint32_t next : successors[node]) {
      if (--waiting_for[next] == 0) ready.push(next);
    }
  }
  if (order.size() != nodes) report_cycle(edges, waiting_for, name_of);
  return order;
}

}  // namespace emplace
