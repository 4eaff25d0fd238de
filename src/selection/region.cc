#include "selection/region.h"

#include <algorithm>

#include "selection/kernels.h"

namespace emplace {

Region::Region(const CostTables& tables) : tables_(tables), local_(tables.num_nodes(), -1) {}

void Region::select(std::span<const std::int32_t> nodes, std::span<const std::int32_t> choice,
                    const EliminationOrder::Limits& limits, std::span<const double> protection) {
  for (const std::int32_t node : nodes_) local_[node] = -1;
  nodes_.assign(nodes.begin(), nodes.end());
  sizes_.clear();
  current_.clear();
  first_.clear();
  costs_.clear();
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    const std::int32_t node = nodes_[v];
    local_[node] = static_cast<std::int32_t>(v);
    sizes_.push_back(tables_.size(node));
    current_.push_back(choice[node]);
    first_.push_back(costs_.size());
    const auto cost = tables_.cost(node);
    costs_.insert(costs_.end(), cost.begin(), cost.end());
  }
  add_terms(choice);
  order_.find(sizes_, pairs_, limits, protection);
}

void Region::add_terms(std::span<const std::int32_t> choice) {
  terms_.clear();
  pairs_.clear();
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    const std::int32_t node = nodes_[v];
    for (const auto& arc : tables_.arcs(node)) {
      const std::int32_t other = local_[arc.other];
      const double* back =
          tables_.arcs(arc.other)[arc.reverse - tables_.first_arc(arc.other)].table;
      if (other < 0) {
        const auto size = static_cast<std::size_t>(sizes_[v]);
        add_into(costs_.data() + first_[v], back + choice[arc.other] * size, size);
      } else if (other > static_cast<std::int32_t>(v)) {
        pairs_.push_back({static_cast<std::int32_t>(v), other});
        terms_.push_back({static_cast<std::int32_t>(v), other, arc.table, back});
      }
    }
  }
}

void Region::solve(std::span<const double> before, std::span<const double> extra,
                   std::vector<NodeChange>& changes) {
  priced_ = costs_;
  unary_.clear();
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    double* cost = priced_.data() + first_[v];
    tables_.add_usage_prices(nodes_[v], before, cost);
    if (!extra.empty()) {
      add_into(cost, extra.data() + tables_.first(nodes_[v]), static_cast<std::size_t>(sizes_[v]));
    }
    unary_.push_back(cost);
  }
  values_ = current_;
  elimination_.solve(order_, sizes_, unary_, terms_, values_);
  changes.clear();
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    if (values_[v] != current_[v]) changes.push_back({nodes_[v], values_[v]});
  }
}

}  // namespace emplace
