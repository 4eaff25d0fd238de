// A bound in exact arithmetic: the pass down of message passing once more, in integers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "selection/messages.h"

namespace emplace {
namespace {

__extension__ typedef __int128 Exact;

// Costs are counted in parts of this size, so that prices and messages may be rounded.
constexpr double kParts = 1 << 20;

Exact parts(double value) {
  return static_cast<Exact>(std::floor(value * kParts));
}

}  // namespace

// E(x) is the sum of beliefs and of what messages left on the edges, for any messages. A belief's
// least, and the least of an edge with its share of the belief above that, are counted; shares of
// one node add up to no more than 1, so nothing is counted twice.
std::int64_t Messages::certified_bound() const {
  const ReducedProblem& problem = tables_.problem();
  std::vector<Exact> before{0};
  Exact total = static_cast<Exact>(problem.constant) * static_cast<Exact>(kParts);
  for (std::size_t t = 0; t < problem.slack.size(); ++t) {
    const Exact price = parts(std::max(0.0, before_[t + 1] - before_[t]));
    before.push_back(before.back() + price);
    total -= price * problem.slack[t];
  }
  std::vector<Exact> down(messages_.size(), 0);  // only what goes to earlier nodes is filled
  std::vector<Exact> belief;
  const auto scaled = [&](double cost) { return parts(cost); };
  for (std::int32_t node = tables_.num_nodes(); node-- > 0;) {
    const auto size = static_cast<std::size_t>(tables_.size(node));
    const auto arcs = tables_.arcs(node);
    belief.assign(size, 0);
    const auto cost = tables_.cost(node);
    for (std::size_t s = 0; s < size; ++s) belief[s] = scaled(cost[s]);
    for (const UsagePiece& piece : problem.nodes[node].pieces) {
      const Exact price = before[piece.end] - before[piece.begin];
      for (std::size_t s = 0; s < size; ++s) belief[s] += price * piece.usage[s];
    }
    std::int64_t earlier = 0;
    for (const auto& arc : arcs) {
      const std::size_t first = first_[arc.reverse];
      earlier += arc.other < node ? 1 : 0;
      for (std::size_t s = 0; s < size; ++s) {
        belief[s] += arc.other < node ? parts(messages_[first + s]) : down[first + s];
      }
    }
    const Exact least = *std::min_element(belief.begin(), belief.end());
    total += least;
    for (std::size_t k = 0; k < arcs.size(); ++k) {
      const auto& arc = arcs[k];
      if (arc.other > node) continue;
      const std::size_t first = first_[arc.reverse];
      const std::size_t out = first_[tables_.first_arc(node) + static_cast<std::int32_t>(k)];
      const auto width = static_cast<std::size_t>(tables_.size(arc.other));
      Exact lowest = 0;
      for (std::size_t j = 0; j < width; ++j) {
        Exact best = 0;
        for (std::size_t s = 0; s < size; ++s) {
          const Exact sum = (belief[s] - least) / earlier - parts(messages_[first + s]) +
                            scaled(arc.table[s * width + j]);
          if (s == 0 || sum < best) best = sum;
        }
        down[out + j] = best;
        if (j == 0 || best < lowest) lowest = best;
      }
      for (std::size_t j = 0; j < width; ++j) down[out + j] -= lowest;
      total += lowest;
    }
  }
  // Costs are whole numbers, so what is above a number of parts is the next one.
  const auto whole = static_cast<Exact>(kParts);
  const Exact bound = total >= 0 ? (total + whole - 1) / whole : Exact{0};
  return static_cast<std::int64_t>(
      std::min<Exact>(bound, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace emplace
