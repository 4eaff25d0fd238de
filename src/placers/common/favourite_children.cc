// The linear relaxation of scheduling on unlimited devices: x_e is 0 if the child of edge e follows
// on its parent's device and 1 if its data are sent; at most one child and one parent each follow
// for free. Its optimum is at most the true one, and where communication is no longer than the
// shortest task, rounding x < 1/2 to 0 gives a schedule within 4/3 of the best (Hanen and Munier).
// Here times are what they are and the threshold is the caller's, so it is a heuristic; the
// rounding stays a matching, smallest x first.
//
// Two exact steps make it smaller: edges that longer paths imply are dropped, and chains without
// branches are one task. Clp solves it by dual simplex, up to a number of iterations; stopped
// early, its values still guide. Size: tasks + edges.
#include "placers/common/favourite_children.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>
#include <utility>

#include <ClpPresolve.hpp>
#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>

#include "base/check.h"
#include "base/csr.h"

#include "placers/common/task_graph.h"

#include "lp/solver_memory.h"

namespace emplace {
namespace {

constexpr std::uint32_t kNone = TaskChains::kNone;

// minimise w, where task i starts at s_i, and x_e = 0 where edge e leads to its favourite child:
//   s_i + p_i + c_e x_e <= s_j        for each edge e = (i, j)
//   s_i + p_i <= w                    for each task without successors
//   sum of x_e >= children - 1        for each task's outgoing edges
//   sum of x_e >= parents - 1         for each task's incoming edges
class LinearProgram {
 public:
  LinearProgram(const TaskChains& chains, const std::vector<TaskEdge>& edges)
      : chains_(chains), edges_(edges), num_tasks_(static_cast<int>(chains.duration.size())) {}

  // x by edge; whether the solver reached the optimum.
  std::pair<std::vector<double>, bool> solve(const FavouriteOptions& options);

 private:
  int start_column(std::uint32_t task) const { return static_cast<int>(task); }
  int edge_column(std::size_t edge) const { return num_tasks_ + static_cast<int>(edge); }
  int end_column() const { return num_tasks_ + static_cast<int>(edges_.size()); }

  void add(int column, double coefficient) {
    rows_.push_back(static_cast<int>(lower_.size()));
    columns_.push_back(column);
    coefficients_.push_back(coefficient);
  }
  void close_row(double lower) { lower_.push_back(lower); }
  void add_precedence();
  void add_counts();
  double scale() const;

  const TaskChains& chains_;
  const std::vector<TaskEdge>& edges_;
  int num_tasks_;
  double unit_ = 1;  // nanoseconds
  std::vector<int> rows_;
  std::vector<int> columns_;
  std::vector<double> coefficients_;
  std::vector<double> lower_;  // every row is "at least"
};

void LinearProgram::add_precedence() {
  std::vector<std::uint8_t> has_successor(static_cast<std::size_t>(num_tasks_), 0);
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    const TaskEdge& edge = edges_[i];
    has_successor[edge.from] = 1;
    add(start_column(edge.to), 1);
    add(start_column(edge.from), -1);
    if (edge.transfer > 0) add(edge_column(i), -static_cast<double>(edge.transfer) / unit_);
    close_row(static_cast<double>(chains_.duration[edge.from]) / unit_);
  }
  for (std::uint32_t task = 0; task < chains_.duration.size(); ++task) {
    if (has_successor[task] != 0) continue;
    add(end_column(), 1);
    add(start_column(task), -1);
    close_row(static_cast<double>(chains_.duration[task]) / unit_);
  }
}

void LinearProgram::add_counts() {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_parent;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_child;
  for (std::uint32_t i = 0; i < edges_.size(); ++i) {
    if (edges_[i].transfer == 0) continue;
    by_parent.emplace_back(edges_[i].from, i);
    by_child.emplace_back(edges_[i].to, i);
  }
  const auto size = static_cast<std::size_t>(num_tasks_);
  for (const auto& lists : {Csr<std::uint32_t>::from_pairs(size, by_parent),
                            Csr<std::uint32_t>::from_pairs(size, by_child)}) {
    for (std::size_t task = 0; task < size; ++task) {
      if (lists[task].size() < 2) continue;
      for (const std::uint32_t edge : lists[task]) add(edge_column(edge), 1);
      close_row(static_cast<double>(lists[task].size() - 1));
    }
  }
}

// The mean duration, so that the numbers are near 1.
double LinearProgram::scale() const {
  double total = 0;
  for (const Nanoseconds duration : chains_.duration) total += static_cast<double>(duration);
  return std::max(1.0, total / std::max(1, num_tasks_));
}

std::pair<std::vector<double>, bool> LinearProgram::solve(const FavouriteOptions& options) {
  unit_ = scale();
  add_precedence();
  add_counts();
  const int num_columns = end_column() + 1;
  const auto num_rows = static_cast<int>(lower_.size());
  std::vector<double> low(static_cast<std::size_t>(num_columns), 0.0);
  std::vector<double> high(static_cast<std::size_t>(num_columns), COIN_DBL_MAX);
  std::vector<double> objective(static_cast<std::size_t>(num_columns), 0.0);
  const auto first_edge = static_cast<std::ptrdiff_t>(num_tasks_);
  std::fill(high.begin() + first_edge, high.end() - 1, 1.0);
  objective.back() = 1;
  const std::vector<double> upper(lower_.size(), COIN_DBL_MAX);
  std::pair<std::vector<double>, bool> result;
  call_solver([&] {
    const CoinPackedMatrix matrix(false, rows_.data(), columns_.data(), coefficients_.data(),
                                  static_cast<CoinBigIndex>(coefficients_.size()));

    ClpSimplex solver;
    solver.setLogLevel(0);
    solver.loadProblem(matrix, low.data(), high.data(), objective.data(), lower_.data(),
                       upper.data());
    EMPLACE_CHECK(solver.numberRows() == num_rows && solver.numberColumns() == num_columns);
    solver.setMaximumIterations(static_cast<int>(options.iterations));
    solver.setMaximumWallSeconds(options.seconds);  // the other is processor time
    ClpPresolve presolve;
    presolve.setDoDoubleton(false);  // quadratic where a task has very many children
    const std::unique_ptr<ClpSimplex> reduced(presolve.presolvedModel(solver, 1e-8));
    EMPLACE_CHECK(reduced != nullptr);  // the program always has a solution: x = 1, late starts
    reduced->dual();
    const bool optimal = reduced->status() == 0;
    presolve.postsolve(true);
    const double* values = solver.primalColumnSolution() + num_tasks_;
    result = {std::vector<double>(values, values + edges_.size()), optimal};
  });
  return result;
}

// By vertex: its favourite child, or kNone. Both ends of an edge take part in one favourite at
// most, the smallest variables first.
std::vector<std::uint32_t> round_favourites(const TaskChains& chains,
                                            const std::vector<TaskEdge>& edges,
                                            const std::vector<double>& x, double threshold) {
  std::vector<std::uint32_t> by_value;
  for (std::uint32_t i = 0; i < edges.size(); ++i) {
    if (edges[i].transfer > 0 && x[i] <= threshold) by_value.push_back(i);
  }
  std::stable_sort(by_value.begin(), by_value.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return x[a] < x[b]; });
  std::vector<std::uint32_t> child = chains.next;
  std::vector<std::uint8_t> has_parent(child.size(), 0);
  for (const std::uint32_t i : by_value) {
    const auto [from, to, transfer] = edges[i];
    if (child[from] != kNone || has_parent[to] != 0) continue;
    child[from] = to;
    has_parent[to] = 1;
  }
  return child;
}

// From vertices to ops. Vertices that take no time are passed over: they never wait for a device,
// so that the device is kept for the next one that does.
FavouriteChildren favourites_of_ops(const Problem& problem, const TaskGraph& graph,
                                    const std::vector<std::uint32_t>& child) {
  std::vector<Nanoseconds> transfer(child.size(), 0);  // to the favourite child
  for (const TaskEdge& edge : graph.edges) {
    if (child[edge.from] == edge.to) transfer[edge.from] = edge.transfer;
  }
  FavouriteChildren result;
  result.child.assign(problem.num_ops(), kNoOp);
  result.delay.assign(problem.num_ops(), 0);
  for (std::uint32_t vertex = 0; vertex < child.size(); ++vertex) {
    if (graph.duration[vertex] == 0) continue;
    Nanoseconds delay = transfer[vertex];
    std::uint32_t next = child[vertex];
    while (next != kNone && graph.duration[next] == 0) {
      delay = std::max(delay, transfer[next]);
      next = child[next];
    }
    if (next == kNone) continue;
    result.child[graph.op[vertex]] = graph.op[next];
    result.delay[graph.op[vertex]] = delay;
  }
  return result;
}

// What loading and presolving the program take for each edge, which nothing can interrupt.
constexpr double kSecondsAnEdge = 2e-5;

// In place of a solution that there is no time for: the dearer a transfer, the more it is avoided.
std::vector<double> guessed(const std::vector<TaskEdge>& edges, double threshold) {
  Nanoseconds longest = 1;
  for (const TaskEdge& edge : edges) longest = std::max(longest, edge.transfer);
  std::vector<double> x;
  x.reserve(edges.size());
  for (const TaskEdge& edge : edges) {
    const double share = static_cast<double>(edge.transfer) / static_cast<double>(longest);
    x.push_back(threshold * (1 - share));
  }
  return x;
}

}  // namespace

FavouriteResult find_favourite_children(const Problem& problem,
                                        const std::vector<std::uint8_t>& floating,
                                        const FavouriteOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  TaskGraph graph = build_task_graph(problem, floating);
  remove_implied_edges(graph);
  const TaskChains chains = find_chains(graph);
  std::vector<TaskEdge> between;  // the edges that are not within a chain, by vertices and by tasks
  std::vector<TaskEdge> task_edges;
  for (const TaskEdge& edge : graph.edges) {
    if (chains.next[edge.from] == edge.to) continue;
    between.push_back(edge);
    task_edges.push_back({chains.task[edge.from], chains.task[edge.to], edge.transfer});
  }
  FavouriteResult result;
  std::vector<double> x;
  FavouriteOptions left = options;
  left.seconds -= std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (left.seconds < kSecondsAnEdge * static_cast<double>(task_edges.size())) {
    x = guessed(task_edges, options.threshold);
    result.solved = task_edges.empty();
    result.optimal = task_edges.empty();
  } else if (!task_edges.empty()) {
    std::tie(x, result.optimal) = LinearProgram(chains, task_edges).solve(left);
  }
  const auto child = round_favourites(chains, between, x, options.threshold);
  result.favourites = favourites_of_ops(problem, graph, child);
  return result;
}

}  // namespace emplace
