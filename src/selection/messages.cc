// One pass visits the nodes in order, then in reverse. At each node the messages to it and its own
// priced cost make its belief, and every edge to nodes still to be visited gets a share of it, so
// that costs move along the order but none is made or lost: the sum of beliefs and of what is left
// on the edges is the cost of every choice, whatever the messages are (a reparameterisation). The
// sum of the least of each is therefore a lower bound; with prices, less what the limits' slack is
// worth, it bounds feasible choices. Not tight where the linear program over choices of nodes and
// edges is not (cycles). A pass takes O(sum over edges of the size of their tables).
//
// `pass` works in floating point. `certified_bound` proves its bound: the pass down once more in
// integers, rounded such that the bound is only ever too low.
#include "selection/messages.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "selection/kernels.h"

namespace emplace {

Messages::Messages(const CostTables& tables) : tables_(tables) {
  std::size_t used = 0;
  std::int32_t largest = 1;
  for (std::int32_t node = 0; node < tables.num_nodes(); ++node) {
    std::int32_t before = 0;
    std::int32_t after = 0;
    for (const auto& arc : tables.arcs(node)) {
      first_.push_back(used);
      used += tables.size(arc.other);
      ++(arc.other < node ? before : after);
    }
    share_.push_back(1.0 / std::max({before, after, 1}));
    largest = std::max(largest, tables.size(node));
  }
  messages_.assign(used, 0.0);
  belief_.resize(largest);
  buffer_.resize(largest);
  set_prices(std::vector<double>(tables.num_times(), 0.0));
}

void Messages::set_prices(std::span<const double> prices) {
  before_.assign(1, 0.0);
  paid_back_ = 0;
  for (std::size_t t = 0; t < prices.size(); ++t) {
    before_.push_back(before_.back() + prices[t]);
    paid_back_ += prices[t] * static_cast<double>(tables_.problem().slack[t]);
  }
  priced_.resize(tables_.num_strategies());
  for (std::int32_t node = 0; node < tables_.num_nodes(); ++node) {
    const auto cost = tables_.cost(node);
    double* priced = priced_.data() + tables_.first(node);
    std::copy(cost.begin(), cost.end(), priced);
    tables_.add_usage_prices(node, before_, priced);
  }
}

double Messages::send(std::int32_t arc_index, std::int32_t node, double share) {
  const auto& arc = tables_.arcs(node)[arc_index - tables_.first_arc(node)];
  const double* back = messages_.data() + first_[arc.reverse];
  double* out = messages_.data() + first_[arc_index];
  const std::int32_t size = tables_.size(node);
  const auto width = static_cast<std::size_t>(tables_.size(arc.other));
  for (std::int32_t s = 0; s < size; ++s) buffer_[s] = share * belief_[s] - back[s];
  min_plus(out, buffer_.data(), arc.table, static_cast<std::size_t>(size), width);
  const double lowest = least(out, width);
  for (std::size_t j = 0; j < width; ++j) out[j] -= lowest;
  return lowest;
}

void Messages::sweep_node(std::int32_t node, bool up, double* bound) {
  const auto size = static_cast<std::size_t>(tables_.size(node));
  const auto arcs = tables_.arcs(node);
  std::copy_n(priced_.data() + tables_.first(node), size, belief_.data());
  for (const auto& arc : arcs) {
    add_into(belief_.data(), messages_.data() + first_[arc.reverse], size);
  }
  const double lowest = least(belief_.data(), size);
  for (std::size_t s = 0; s < size; ++s) belief_[s] -= lowest;
  *bound += lowest;
  for (std::size_t k = 0; k < arcs.size(); ++k) {
    if ((arcs[k].other > node) != up) continue;
    *bound += send(tables_.first_arc(node) + static_cast<std::int32_t>(k), node, share_[node]);
  }
}

double Messages::pass() {
  double ignored = 0;
  for (std::int32_t node = 0; node < tables_.num_nodes(); ++node) sweep_node(node, true, &ignored);
  double bound = 0;
  for (std::int32_t node = tables_.num_nodes(); node-- > 0;) sweep_node(node, false, &bound);
  return bound - paid_back_ + static_cast<double>(tables_.problem().constant);
}

void Messages::decode(std::vector<std::int32_t>& choice) const {
  choice.resize(tables_.num_nodes());
  std::vector<double> total;
  for (std::int32_t node = 0; node < tables_.num_nodes(); ++node) {
    const auto size = static_cast<std::size_t>(tables_.size(node));
    const double* priced = priced_.data() + tables_.first(node);
    total.assign(priced, priced + size);
    for (const auto& arc : tables_.arcs(node)) {
      if (arc.other > node) {
        add_into(total.data(), messages_.data() + first_[arc.reverse], size);
      } else {
        const double* table =
            tables_.arcs(arc.other)[arc.reverse - tables_.first_arc(arc.other)].table;
        add_into(total.data(), table + choice[arc.other] * size, size);
      }
    }
    choice[node] =
        static_cast<std::int32_t>(std::min_element(total.begin(), total.end()) - total.begin());
  }
}

void Messages::belief(std::int32_t node, std::vector<double>& belief) const {
  const auto size = static_cast<std::size_t>(tables_.size(node));
  const double* priced = priced_.data() + tables_.first(node);
  belief.assign(priced, priced + size);
  for (const auto& arc : tables_.arcs(node)) {
    add_into(belief.data(), messages_.data() + first_[arc.reverse], size);
  }
}

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
