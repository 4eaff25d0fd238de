#include "placers/common/task_graph.h"

#include <algorithm>
#include <tuple>

namespace emplace {
namespace {

constexpr std::uint32_t kNone = TaskChains::kNone;
constexpr std::size_t kMaxHubs = 64;
constexpr Nanoseconds kNoPath = -1;

bool by_from(const TaskEdge& a, const TaskEdge& b) {
  return std::tie(a.from, a.to) < std::tie(b.from, b.to);
}

bool by_to(const TaskEdge& a, const TaskEdge& b) {
  return std::tie(a.to, a.from) < std::tie(b.to, b.from);
}

// Sorts; adds up the transfers of equal pairs.
void merge_equal(std::vector<TaskEdge>& edges) {
  std::sort(edges.begin(), edges.end(), by_from);
  std::size_t kept = 0;
  for (const TaskEdge& edge : edges) {
    if (kept > 0 && edges[kept - 1].from == edge.from && edges[kept - 1].to == edge.to) {
      edges[kept - 1].transfer += edge.transfer;
    } else {
      edges[kept++] = edge;
    }
  }
  edges.resize(kept);
}

// Vertices spread evenly over a longest path, transfers left aside.
std::vector<std::uint32_t> find_hubs(const TaskGraph& graph,
                                     const std::vector<TaskEdge>& edges_by_to) {
  const std::size_t size = graph.op.size();
  std::vector<Nanoseconds> finish = graph.duration;
  std::vector<std::uint32_t> previous(size, kNone);
  for (const TaskEdge& edge : edges_by_to) {
    const Nanoseconds reached = finish[edge.from] + graph.duration[edge.to];
    if (previous[edge.to] != kNone && reached <= finish[edge.to]) continue;
    finish[edge.to] = reached;
    previous[edge.to] = edge.from;
  }
  std::vector<std::uint32_t> path;
  const auto last = std::max_element(finish.begin(), finish.end());
  if (last == finish.end()) return path;
  for (auto at = static_cast<std::uint32_t>(last - finish.begin()); at != kNone;
       at = previous[at]) {
    path.push_back(at);
  }
  const std::size_t count = std::min(kMaxHubs, path.size());
  std::vector<std::uint32_t> hubs;
  for (std::size_t i = 0; i < count; ++i) hubs.push_back(path[i * path.size() / count]);
  return hubs;
}

// Longest paths from every vertex's finish to the hub's start, and from there to every vertex's
// start, transfers left aside.
struct HubPaths {
  std::vector<Nanoseconds> to_hub;
  std::vector<Nanoseconds> from_hub;
};

HubPaths find_hub_paths(const TaskGraph& graph, const std::vector<TaskEdge>& edges_by_to,
                        std::uint32_t hub) {
  HubPaths paths{std::vector<Nanoseconds>(graph.op.size(), kNoPath),
                 std::vector<Nanoseconds>(graph.op.size(), kNoPath)};
  paths.from_hub[hub] = 0;
  for (const TaskEdge& edge : edges_by_to) {
    if (paths.from_hub[edge.from] == kNoPath) continue;
    Nanoseconds& length = paths.from_hub[edge.to];
    length = std::max(length, paths.from_hub[edge.from] + graph.duration[edge.from]);
  }
  for (auto edge = graph.edges.rbegin(); edge != graph.edges.rend(); ++edge) {
    if (edge->to != hub && paths.to_hub[edge->to] == kNoPath) continue;
    const Nanoseconds rest =
        edge->to == hub ? 0 : paths.to_hub[edge->to] + graph.duration[edge->to];
    paths.to_hub[edge->from] = std::max(paths.to_hub[edge->from], rest);
  }
  return paths;
}

}  // namespace

TaskGraph build_task_graph(const Problem& problem, const std::vector<std::uint8_t>& floating) {
  const Graph& graph = problem.graph();
  TaskGraph result;
  std::vector<std::uint32_t> vertex_of(graph.num_ops(), kNone);
  std::vector<TaskEdge> incoming;
  std::vector<TensorId> tensors;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (floating[op] != 0) continue;
    const auto vertex = static_cast<std::uint32_t>(result.op.size());
    incoming.clear();
    tensors.assign(graph.inputs(op).begin(), graph.inputs(op).end());
    std::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
    for (const TensorId tensor : tensors) {
      const std::uint32_t from = vertex_of[graph.producer(tensor)];
      if (from != kNone) incoming.push_back({from, vertex, problem.mean_transfer_time(tensor)});
    }
    for (const OpId other : graph.after(op)) {
      if (vertex_of[other] != kNone) incoming.push_back({vertex_of[other], vertex, 0});
    }
    merge_equal(incoming);
    if (problem.mean_duration(op) == 0 && incoming.size() == 1) {
      vertex_of[op] = incoming.front().from;
      continue;
    }
    vertex_of[op] = vertex;
    result.op.push_back(op);
    result.duration.push_back(problem.mean_duration(op));
    result.edges.insert(result.edges.end(), incoming.begin(), incoming.end());
  }
  std::sort(result.edges.begin(), result.edges.end(), by_from);
  return result;
}

void remove_implied_edges(TaskGraph& graph) {
  std::vector<TaskEdge> edges_by_to = graph.edges;
  std::sort(edges_by_to.begin(), edges_by_to.end(), by_to);
  std::vector<std::uint8_t> implied(graph.edges.size(), 0);
  for (const std::uint32_t hub : find_hubs(graph, edges_by_to)) {
    const HubPaths paths = find_hub_paths(graph, edges_by_to, hub);
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      const TaskEdge& edge = graph.edges[i];
      const Nanoseconds before = paths.to_hub[edge.from];
      const Nanoseconds after = paths.from_hub[edge.to];
      // Between the two ends lie, beside the hub, both parts of a path through it.
      const bool beside = edge.to != hub && before != kNoPath && after != kNoPath;
      if (beside && before + after >= edge.transfer) implied[i] = 1;
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    if (implied[i] == 0) graph.edges[kept++] = graph.edges[i];
  }
  graph.edges.resize(kept);
}

TaskChains find_chains(const TaskGraph& graph) {
  const std::size_t size = graph.op.size();
  std::vector<std::uint32_t> outgoing(size, 0);
  std::vector<std::uint32_t> incoming(size, 0);
  for (const TaskEdge& edge : graph.edges) {
    ++outgoing[edge.from];
    ++incoming[edge.to];
  }
  TaskChains chains;
  chains.next.assign(size, kNone);
  chains.task.assign(size, kNone);
  std::vector<std::uint32_t> previous(size, kNone);
  for (const TaskEdge& edge : graph.edges) {
    if (outgoing[edge.from] != 1 || incoming[edge.to] != 1) continue;
    chains.next[edge.from] = edge.to;
    previous[edge.to] = edge.from;
  }
  // Vertices are in topological order, so that a chain's earlier ones have their task already.
  for (std::uint32_t vertex = 0; vertex < size; ++vertex) {
    if (previous[vertex] != kNone) {
      chains.task[vertex] = chains.task[previous[vertex]];
    } else {
      chains.task[vertex] = static_cast<std::uint32_t>(chains.duration.size());
      chains.duration.push_back(0);
    }
    chains.duration[chains.task[vertex]] += graph.duration[vertex];
  }
  return chains;
}

}  // namespace emplace
