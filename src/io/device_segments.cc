// A node's level is the number of changes of device on the worst path to it. Nodes of one device
// and level are a segment: between segments, edges only go to higher levels, so they form no cycle.
// That makes more segments than need be (an op that waits for another device starts a new level
// even where nothing else of its own device feeds that one), so neighbours of one device are then
// merged wherever no path through others connects them: what is merged stays free of cycles. Two
// searches over the segments for each merge, quadratic in their number, which is why very many are
// left as they are.
#include "io/device_segments.h"

#include <algorithm>
#include <map>
#include <queue>

#include "base/check.h"
#include "base/union_find.h"

namespace emplace {
namespace {

constexpr std::size_t kMostMerged = 3000;

class SegmentMerger {
 public:
  SegmentMerger(std::size_t segments,
                const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges)
      : sets_(segments), next_(segments), seen_(segments, 0) {
    for (const auto& [from, to] : edges) next_[from].push_back(to);
  }

  std::uint32_t find(std::uint32_t segment) { return sets_.find(segment); }

  bool merge(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    if (leads_round(a, b) || leads_round(b, a)) return false;
    sets_.unite(a, b);
    const std::uint32_t kept = find(a);
    const std::uint32_t gone = kept == a ? b : a;
    next_[kept].insert(next_[kept].end(), next_[gone].begin(), next_[gone].end());
    next_[gone].clear();
    return true;
  }

 private:
  // Whether a path from one to the other passes through a third.
  bool leads_round(std::uint32_t from, std::uint32_t to) {
    ++round_;
    std::vector<std::uint32_t> waiting;
    const auto enter = [&](std::uint32_t segment) {
      if (seen_[segment] == round_) return;
      seen_[segment] = round_;
      waiting.push_back(segment);
    };
    for (const std::uint32_t successor : next_[from]) {
      const std::uint32_t first = find(successor);
      if (first != from && first != to) enter(first);
    }
    while (!waiting.empty()) {
      const std::uint32_t segment = waiting.back();
      waiting.pop_back();
      for (const std::uint32_t successor : next_[segment]) {
        const std::uint32_t reached = find(successor);
        if (reached == to) return true;
        enter(reached);
      }
    }
    return false;
  }

  UnionFind sets_;
  std::vector<std::vector<std::uint32_t>> next_;
  std::vector<std::uint32_t> seen_;  // the last round that saw it
  std::uint32_t round_ = 0;
};

// Renumbers segments so that each comes after what it reads from; the least first where there is a
// choice.
std::vector<std::uint32_t> segment_order(
    std::size_t count, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) {
  std::vector<std::vector<std::uint32_t>> next(count);
  std::vector<std::uint32_t> missing(count, 0);
  for (const auto& [from, to] : edges) {
    next[from].push_back(to);
    ++missing[to];
  }
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<std::uint32_t> position(count, 0);
  std::uint32_t placed = 0;
  for (; !ready.empty(); ++placed) {
    const std::uint32_t segment = ready.top();
    ready.pop();
    position[segment] = placed;
    for (const std::uint32_t successor : next[segment]) {
      if (--missing[successor] == 0) ready.push(successor);
    }
  }
  EMPLACE_CHECK(placed == count);
  return position;
}

}  // namespace

DeviceSegments device_segments(const std::vector<DeviceId>& device_of_node,
                               const std::vector<std::vector<std::uint32_t>>& reads) {
  const std::size_t nodes = device_of_node.size();
  std::vector<std::uint32_t> level(nodes, 0);
  std::map<std::pair<std::uint32_t, DeviceId>, std::uint32_t> segments;
  for (std::size_t node = 0; node < nodes; ++node) {
    for (const std::uint32_t from : reads[node]) {
      const bool changes = device_of_node[from] != device_of_node[node];
      level[node] = std::max(level[node], level[from] + (changes ? 1 : 0));
    }
    segments[{level[node], device_of_node[node]}] = 0;
  }
  std::uint32_t count = 0;
  for (auto& [key, number] : segments) number = count++;

  DeviceSegments result{.of_node = std::vector<std::uint32_t>(nodes), .device = {}};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  const auto find_edges = [&] {
    edges.clear();
    for (std::size_t node = 0; node < nodes; ++node) {
      for (const std::uint32_t from : reads[node]) {
        const auto edge = std::pair(result.of_node[from], result.of_node[node]);
        if (edge.first != edge.second) edges.push_back(edge);
      }
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  };
  for (std::size_t node = 0; node < nodes; ++node) {
    result.of_node[node] = segments[{level[node], device_of_node[node]}];
  }
  if (count <= kMostMerged) {
    find_edges();
    SegmentMerger merger(count, edges);
    std::map<DeviceId, std::uint32_t> last;
    for (const auto& [key, number] : segments) {
      const auto [before, first] = last.try_emplace(key.second, number);
      if (!first && !merger.merge(before->second, number)) before->second = number;
    }
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (std::uint32_t& segment : result.of_node) {
      segment = numbers.try_emplace(merger.find(segment), 0).first->first;
    }
    count = 0;
    for (auto& [segment, number] : numbers) number = count++;
    for (std::uint32_t& segment : result.of_node) segment = numbers[segment];
  }
  find_edges();
  const std::vector<std::uint32_t> position = segment_order(count, edges);
  result.device.resize(count);
  for (std::size_t node = 0; node < nodes; ++node) {
    result.of_node[node] = position[result.of_node[node]];
    result.device[result.of_node[node]] = device_of_node[node];
  }
  return result;
}

}  // namespace emplace
