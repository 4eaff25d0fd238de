// Heavy-edge clustering with a limit on weights, as multilevel partitioners coarsen (Karypis and
// Kumar 1998; Meyerhenke, Sanders and Schulz 2014), pass after pass over the contracted graph.
#include "placers/local/clusters.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace emplace {
namespace {

constexpr double kHeaviest = 1.5;  // times the mean share of a cluster
constexpr double kLeastProgress = 0.95;

// The graph between passes: vertices are clusters so far.
struct PassGraph {
  std::vector<std::int64_t> offsets;
  std::vector<std::uint32_t> neighbours;
  std::vector<double> weights;  // beside neighbours
  std::vector<double> work;
  std::vector<std::uint32_t> part;

  std::uint32_t size() const { return static_cast<std::uint32_t>(work.size()); }
};

// Dense numbers in the order of each label's first vertex; returns how many.
std::uint32_t make_dense(std::vector<std::uint32_t>& labels) {
  constexpr std::uint32_t kUnseen = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> number;
  std::uint32_t count = 0;
  for (std::uint32_t& label : labels) {
    if (label >= number.size()) number.resize(label + std::size_t{1}, kUnseen);
    if (number[label] == kUnseen) number[label] = count++;
    label = number[label];
  }
  return count;
}

PassGraph first_pass(const CoarseGraph& graph, const std::vector<std::uint32_t>& part_of_group) {
  PassGraph pass;
  pass.offsets = graph.offsets;
  pass.neighbours.assign(graph.neighbours.begin(), graph.neighbours.end());
  pass.weights.assign(graph.edge_bytes.begin(), graph.edge_bytes.end());
  pass.work.assign(graph.durations.begin(), graph.durations.end());
  pass.part = part_of_group;
  make_dense(pass.part);
  return pass;
}

// A label for each vertex: its own number or that of a neighbour's cluster.
std::vector<std::uint32_t> match(const PassGraph& graph, double heaviest, Rng& rng) {
  std::vector<std::uint32_t> order(graph.size());
  std::iota(order.begin(), order.end(), 0U);
  rng.shuffle(order);
  std::vector<std::uint32_t> label(graph.size());
  std::iota(label.begin(), label.end(), 0U);
  std::vector<double> work = graph.work;
  std::vector<bool> joined(graph.size(), false);  // whether the vertex is in a cluster of several
  for (const std::uint32_t v : order) {
    if (joined[v]) continue;
    double best = 0;
    std::uint32_t to = v;
    for (std::int64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) {
      const std::uint32_t u = graph.neighbours[e];
      if (graph.part[u] != graph.part[v] || label[u] == v) continue;
      if (work[label[u]] + graph.work[v] > heaviest) continue;
      // Light clusters first, so that they grow evenly; never quite the same choice twice.
      const double rating =
          (graph.weights[e] + 1) / (work[label[u]] + graph.work[v] + 1) * (0.5 + rng.uniform());
      if (rating > best) {
        best = rating;
        to = label[u];
      }
    }
    if (to == v) continue;
    label[v] = to;
    joined[v] = joined[to] = true;
    work[to] += graph.work[v];
  }
  return label;
}

PassGraph contract(const PassGraph& graph, const std::vector<std::uint32_t>& label,
                   std::uint32_t count) {
  PassGraph coarse;
  coarse.work.assign(count, 0);
  coarse.part.assign(count, 0);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs(graph.size());
  for (std::uint32_t v = 0; v < graph.size(); ++v) {
    coarse.work[label[v]] += graph.work[v];
    coarse.part[label[v]] = graph.part[v];
    pairs[v] = {label[v], v};
  }
  const auto members = Csr<std::uint32_t>::from_pairs(count, pairs);
  std::vector<std::int64_t> at(count, -1);  // where this cluster's edge to another is
  coarse.offsets.push_back(0);
  for (std::uint32_t cluster = 0; cluster < count; ++cluster) {
    const auto begin = static_cast<std::int64_t>(coarse.neighbours.size());
    for (const std::uint32_t v : members[cluster]) {
      for (std::int64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) {
        const std::uint32_t other = label[graph.neighbours[e]];
        if (other == cluster) continue;
        if (at[other] < begin) {
          at[other] = static_cast<std::int64_t>(coarse.neighbours.size());
          coarse.neighbours.push_back(other);
          coarse.weights.push_back(0);
        }
        coarse.weights[at[other]] += graph.weights[e];
      }
    }
    coarse.offsets.push_back(static_cast<std::int64_t>(coarse.neighbours.size()));
  }
  return coarse;
}

// Merges runs of clusters that follow each other on a device in the order of their first groups.
void merge_runs(std::vector<std::uint32_t>& of_group, const PassGraph& graph,
                std::uint32_t wanted) {
  const double total = std::accumulate(graph.work.begin(), graph.work.end(), 0.0);
  const double most_members = std::max(1.0, static_cast<double>(graph.size()) / wanted);
  struct Run {
    std::uint32_t label = std::numeric_limits<std::uint32_t>::max();
    double work = 0;
    double members = 0;
  };
  std::vector<Run> open(1 + *std::max_element(graph.part.begin(), graph.part.end()));
  std::vector<std::uint32_t> label(graph.size());
  for (std::uint32_t v = 0; v < graph.size(); ++v) {
    Run& run = open[graph.part[v]];
    const bool full =
        run.work + graph.work[v] > kHeaviest * total / wanted || run.members + 1 > 2 * most_members;
    if (full || run.label == std::numeric_limits<std::uint32_t>::max()) run = {v, 0, 0};
    label[v] = run.label;
    run.work += graph.work[v];
    run.members += 1;
  }
  for (std::uint32_t& cluster : of_group) cluster = label[cluster];
}

Clusters finish(std::vector<std::uint32_t> of_group) {
  const std::uint32_t count = make_dense(of_group);
  std::vector<std::pair<std::uint32_t, GroupId>> pairs;
  pairs.reserve(of_group.size());
  for (GroupId group = 0; group < of_group.size(); ++group) {
    pairs.emplace_back(of_group[group], group);
  }
  return {std::move(of_group), Csr<GroupId>::from_pairs(count, pairs)};
}

}  // namespace

std::vector<std::uint32_t> devices_of_groups(const Problem& problem, const Placement& placement) {
  std::vector<std::uint32_t> devices(problem.num_groups());
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    devices[group] = placement[problem.group_ops(group)[0]];
  }
  return devices;
}

Clusters single_groups(GroupId num_groups) {
  std::vector<std::uint32_t> own(num_groups);
  std::iota(own.begin(), own.end(), 0U);
  return finish(std::move(own));
}

Clusters cluster_groups(const CoarseGraph& graph, const std::vector<std::uint32_t>& part_of_group,
                        std::uint32_t wanted, Rng& rng) {
  std::vector<std::uint32_t> of_group(graph.size());
  std::iota(of_group.begin(), of_group.end(), 0U);
  if (graph.size() <= wanted) return finish(std::move(of_group));
  const double total = std::accumulate(graph.durations.begin(), graph.durations.end(), 0.0);
  const double heaviest = kHeaviest * total / wanted;
  PassGraph pass = first_pass(graph, part_of_group);
  while (pass.size() > wanted) {
    std::vector<std::uint32_t> label = match(pass, heaviest, rng);
    const std::uint32_t count = make_dense(label);
    for (std::uint32_t& cluster : of_group) cluster = label[cluster];
    const bool stuck = count > kLeastProgress * pass.size();
    pass = contract(pass, label, count);
    if (stuck) break;
  }
  if (pass.size() > 2 * wanted) merge_runs(of_group, pass, wanted);
  return finish(std::move(of_group));
}

}  // namespace emplace
