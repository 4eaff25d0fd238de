#include "selection/selection_problem.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace emplace {
namespace {

std::int64_t clamped(std::int64_t value) {
  EMPLACE_CHECK(value >= 0);
  return std::min(value, kForbidden);
}

std::int64_t total_cost(const SelectionProblem& problem, std::span<const std::int32_t> strategies) {
  std::int64_t cost = 0;
  for (std::int32_t node = 0; node < problem.num_nodes(); ++node) {
    cost = add_costs(cost, problem.costs(node)[strategies[node]]);
  }
  for (std::int32_t e = 0; e < problem.num_edges(); ++e) {
    const auto [a, b] = problem.edge(e);
    const std::size_t row = static_cast<std::size_t>(strategies[a]) * problem.num_strategies(b);
    cost = add_costs(cost, problem.table(e)[row + strategies[b]]);
  }
  return cost;
}

std::int64_t peak_usage(const SelectionProblem& problem, std::span<const std::int32_t> strategies) {
  struct Event {
    std::int64_t time;
    bool begins;
    std::int64_t usage;
  };
  std::vector<Event> events;
  for (std::int32_t node = 0; node < problem.num_nodes(); ++node) {
    const auto& alive = problem.interval(node);
    const std::int64_t usage = problem.usages(node)[strategies[node]];
    if (alive.empty() || usage == 0) continue;
    events.push_back({alive.begin, true, usage});
    events.push_back({alive.end, false, usage});
  }
  std::sort(events.begin(), events.end(), [](const Event& x, const Event& y) {
    return std::pair(x.time, x.begins) < std::pair(y.time, y.begins);
  });
  // Beyond what saturates, the rest of the sum is kept apart.
  std::int64_t now = 0;
  std::int64_t beyond = 0;
  std::int64_t peak = 0;
  for (const Event& event : events) {
    now += event.begins ? event.usage : -event.usage;
    if (now > kForbidden) {
      now -= kForbidden;
      ++beyond;
    } else if (now < 0) {
      now += kForbidden;
      --beyond;
    }
    peak = std::max(peak, beyond > 0 ? kForbidden : now);
  }
  return peak;
}

}  // namespace

std::int32_t SelectionProblem::add_node(std::span<const std::int64_t> costs,
                                        std::span<const std::int64_t> usages, Interval alive) {
  EMPLACE_CHECK(!costs.empty() && costs.size() == usages.size());
  for (const std::int64_t cost : costs) costs_.push_back(clamped(cost));
  for (const std::int64_t usage : usages) usages_.push_back(clamped(usage));
  first_.push_back(costs_.size());
  intervals_.push_back(alive);
  return num_nodes() - 1;
}

std::int32_t SelectionProblem::add_node(std::span<const std::int64_t> costs) {
  const std::vector<std::int64_t> usages(costs.size(), 0);
  return add_node(costs, usages, {});
}

void SelectionProblem::add_edge(std::int32_t a, std::int32_t b,
                                std::span<const std::int64_t> table) {
  EMPLACE_CHECK(a >= 0 && a < num_nodes() && b >= 0 && b < num_nodes());
  EMPLACE_CHECK(table.size() == static_cast<std::size_t>(num_strategies(a)) * num_strategies(b));
  for (const std::int64_t cost : table) tables_.push_back(clamped(cost));
  first_entry_.push_back(tables_.size());
  edges_.push_back({a, b});
}

SelectionValue evaluate(const SelectionProblem& problem, std::span<const std::int32_t> strategies) {
  EMPLACE_CHECK(strategies.size() == static_cast<std::size_t>(problem.num_nodes()));
  for (std::int32_t node = 0; node < problem.num_nodes(); ++node) {
    EMPLACE_CHECK(strategies[node] >= 0 && strategies[node] < problem.num_strategies(node));
  }
  SelectionValue value;
  value.cost = total_cost(problem, strategies);
  value.peak = peak_usage(problem, strategies);
  value.feasible =
      value.cost < kForbidden && (!problem.usage_limit() || value.peak <= *problem.usage_limit());
  return value;
}

}  // namespace emplace
