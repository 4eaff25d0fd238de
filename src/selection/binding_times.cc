#include "selection/binding_times.h"

#include <algorithm>
#include <utility>

namespace emplace {
namespace {

// Drops all times but those kept, given in order.
void keep_times(ReducedProblem& problem, std::span<const std::int32_t> kept) {
  // The number of the first kept time that is not before t.
  std::vector<std::int32_t> place(problem.slack.size() + 1, 0);
  for (const std::int32_t t : kept) ++place[t + 1];
  for (std::size_t t = 1; t < place.size(); ++t) place[t] += place[t - 1];
  std::vector<std::int64_t> slack;
  for (const std::int32_t t : kept) slack.push_back(problem.slack[t]);
  problem.slack = std::move(slack);
  for (ReducedNode& node : problem.nodes) {
    for (UsagePiece& piece : node.pieces) {
      piece.begin = place[piece.begin];
      piece.end = place[piece.end];
    }
    std::erase_if(node.pieces, [](const UsagePiece& piece) { return piece.begin == piece.end; });
    // Pieces that were apart may have become neighbours that are alike.
    std::vector<UsagePiece> joined;
    for (UsagePiece& piece : node.pieces) {
      if (!joined.empty() && joined.back().end == piece.begin &&
          joined.back().usage == piece.usage) {
        joined.back().end = piece.end;
      } else {
        joined.push_back(std::move(piece));
      }
    }
    node.pieces = std::move(joined);
  }
}

// Of neighbouring times, those whose nodes are among the other's and have as much left go.
std::vector<std::int32_t> undominated_times(const ReducedProblem& problem) {
  const std::size_t count = problem.slack.size();
  std::vector<std::int32_t> begun(count + 1, 0);  // up to and including each time
  std::vector<std::int32_t> ended(count + 1, 0);
  for (const ReducedNode& node : problem.nodes) {
    for (const UsagePiece& piece : node.pieces) {
      ++begun[piece.begin];
      ++ended[piece.end];
    }
  }
  for (std::size_t t = 1; t <= count; ++t) {
    begun[t] += begun[t - 1];
    ended[t] += ended[t - 1];
  }
  std::vector<std::int32_t> kept;
  for (std::size_t t = 0; t < count; ++t) {
    while (!kept.empty() && ended[t] == ended[kept.back()] &&
           problem.slack[kept.back()] >= problem.slack[t]) {
      kept.pop_back();
    }
    if (!kept.empty() && begun[t] == begun[kept.back()] &&
        problem.slack[t] >= problem.slack[kept.back()]) {
      continue;
    }
    kept.push_back(static_cast<std::int32_t>(t));
  }
  return kept;
}

}  // namespace

std::vector<char> binding_times(std::span<const ReducedNode> nodes,
                                std::span<const std::int64_t> slack) {
  std::vector<std::int64_t> change(slack.size() + 1, 0);
  for (const ReducedNode& node : nodes) {
    for (const UsagePiece& piece : node.pieces) {
      const std::int64_t most = *std::max_element(piece.usage.begin(), piece.usage.end());
      change[piece.begin] += most;
      change[piece.end] -= most;
    }
  }
  std::vector<char> binding(slack.size(), 0);
  std::int64_t most = 0;
  for (std::size_t t = 0; t < slack.size(); ++t) {
    most += change[t];
    binding[t] = most > slack[t] ? 1 : 0;
  }
  return binding;
}

void keep_binding_times(ReducedProblem& problem) {
  const std::vector<char> binding = binding_times(problem.nodes, problem.slack);
  std::vector<std::int32_t> kept;
  for (std::size_t t = 0; t < binding.size(); ++t) {
    if (binding[t]) kept.push_back(static_cast<std::int32_t>(t));
  }
  keep_times(problem, kept);
  keep_times(problem, undominated_times(problem));
}

}  // namespace emplace
