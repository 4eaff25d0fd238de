#include <algorithm>
#include <cmath>

#include "selection/elimination.h"

namespace emplace {
namespace {

void insert_sorted(std::vector<std::int32_t>& list, std::int32_t value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at == list.end() || *at != value) list.insert(at, value);
}

void erase_sorted(std::vector<std::int32_t>& list, std::int32_t value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at != list.end() && *at == value) list.erase(at);
}

// The heap's least first; equal ones by index.
constexpr auto kLater = [](const auto& x, const auto& y) { return x > y; };

}  // namespace

double EliminationOrder::table_size(std::int32_t variable) const {
  double size = log_size_[variable];
  for (const std::int32_t other : neighbours_[variable]) size += log_size_[other];
  return size;
}

void EliminationOrder::push(std::int32_t variable) {
  heap_.emplace_back(table_size(variable), variable);
  std::push_heap(heap_.begin(), heap_.end(), kLater);
}

void EliminationOrder::find(std::span<const std::int32_t> sizes, std::span<const Pair> pairs,
                            const Limits& limits, std::span<const double> protection) {
  const auto count = static_cast<std::int32_t>(sizes.size());
  constexpr std::int32_t kOpen = std::numeric_limits<std::int32_t>::max();
  log_size_.clear();
  for (const std::int32_t size : sizes) log_size_.push_back(std::log2(size));
  neighbours_.resize(count);
  scopes_.resize(count);
  for (std::int32_t v = 0; v < count; ++v) {
    neighbours_[v].clear();
    scopes_[v].clear();
  }
  for (const auto& [a, b] : pairs) {
    neighbours_[a].push_back(b);
    neighbours_[b].push_back(a);
  }
  for (auto& list : neighbours_) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  position_.assign(count, kOpen);
  order_.clear();
  fixed_.clear();
  heap_.clear();
  work_ = 0;
  for (std::int32_t v = 0; v < count; ++v) push(v);
  const double most = std::log2(limits.table);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), kLater);
    const auto [size, variable] = heap_.back();
    heap_.pop_back();
    if (position_[variable] != kOpen || size != table_size(variable)) continue;
    const double entries = std::exp2(size);
    if (size > most || work_ + entries > limits.work) {
      fix_one(variable, protection);
      if (position_[variable] == kOpen) push(variable);
      continue;
    }
    work_ += entries;
    eliminate(variable);
  }
  // Scopes in the order of elimination, the first to go last.
  for (auto& scope : scopes_) {
    // Some were fixed only after this variable had gone.
    std::erase_if(scope, [&](std::int32_t v) { return position_[v] < 0; });
    std::sort(scope.begin(), scope.end(),
              [&](std::int32_t x, std::int32_t y) { return position_[x] > position_[y]; });
  }
}

void EliminationOrder::detach(std::int32_t variable) {
  for (const std::int32_t other : neighbours_[variable]) {
    erase_sorted(neighbours_[other], variable);
  }
}

// Of the variable and its neighbours the least protected one.
void EliminationOrder::fix_one(std::int32_t variable, std::span<const double> protection) {
  std::int32_t chosen = variable;
  double least = protection[variable] + log_size_[variable] * 1e-9;
  for (const std::int32_t other : neighbours_[variable]) {
    if (protection[other] >= least) continue;
    least = protection[other];
    chosen = other;
  }
  position_[chosen] = -1;
  fixed_.push_back(chosen);
  detach(chosen);
  for (const std::int32_t other : neighbours_[chosen]) push(other);
  neighbours_[chosen].clear();
}

void EliminationOrder::eliminate(std::int32_t variable) {
  position_[variable] = static_cast<std::int32_t>(order_.size());
  order_.push_back(variable);
  detach(variable);
  auto scope = std::move(neighbours_[variable]);
  neighbours_[variable].clear();
  for (const std::int32_t x : scope) {
    for (const std::int32_t y : scope) {
      if (x != y) insert_sorted(neighbours_[x], y);
    }
  }
  for (const std::int32_t x : scope) push(x);
  scopes_[variable] = std::move(scope);
}

}  // namespace emplace
