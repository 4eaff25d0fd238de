#include "learn/units/acyclic_order.h"

#include <algorithm>

namespace emplace::learn {
namespace {

// Nodes that one search may meet; between layers that follow each other there are far fewer.
constexpr std::size_t kLongestSearch = 100;

using Lists = std::vector<std::set<std::uint32_t>>;

void replace(Lists& lists, Lists& back, std::uint32_t kept, std::uint32_t other) {
  for (const std::uint32_t node : lists[other]) {
    back[node].erase(other);
    if (node == kept) continue;
    back[node].insert(kept);
    lists[kept].insert(node);
  }
  lists[other].clear();
}

}  // namespace

AcyclicOrder::AcyclicOrder(const Precedence& precedence)
    : before_(precedence.order.size()),
      after_(precedence.order.size()),
      place_(precedence.order.size()),
      seen_(precedence.order.size(), 0) {
  for (std::uint32_t i = 0; i < place_.size(); ++i) {
    place_[precedence.order[i]] = i;
    before_[i].insert(precedence.predecessors[i].begin(), precedence.predecessors[i].end());
    after_[i].insert(precedence.successors[i].begin(), precedence.successors[i].end());
  }
}

bool AcyclicOrder::search(std::uint32_t from, std::uint32_t to, const Lists& lists,
                          std::vector<std::uint32_t>& met) {
  const std::uint32_t low = std::min(place_[from], place_[to]);
  const std::uint32_t high = std::max(place_[from], place_[to]);
  ++searches_;
  met.clear();
  std::vector<std::uint32_t> open{from};
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    for (const std::uint32_t next : lists[node]) {
      if (next == to && node != from) return false;
      if (place_[next] <= low || place_[next] >= high || seen_[next] == searches_) continue;
      if (met.size() == kLongestSearch) return false;
      seen_[next] = searches_;
      met.push_back(next);
      open.push_back(next);
    }
  }
  return true;
}

bool AcyclicOrder::may_merge(std::uint32_t a, std::uint32_t b) {
  if (place_[a] > place_[b]) std::swap(a, b);
  return search(a, b, after_, met_after_) && search(b, a, before_, met_before_);
}

void AcyclicOrder::merge(std::uint32_t kept, std::uint32_t other) {
  const auto by_place = [this](std::uint32_t a, std::uint32_t b) { return place_[a] < place_[b]; };
  std::sort(met_before_.begin(), met_before_.end(), by_place);
  std::sort(met_after_.begin(), met_after_.end(), by_place);
  std::vector<std::uint32_t> places{place_[kept], place_[other]};
  for (const std::uint32_t node : met_before_) places.push_back(place_[node]);
  for (const std::uint32_t node : met_after_) places.push_back(place_[node]);
  std::sort(places.begin(), places.end());
  // What leads to the two, then they, then what they lead to; one place is left over.
  for (std::size_t i = 0; i < met_before_.size(); ++i) place_[met_before_[i]] = places[i];
  place_[kept] = places[met_before_.size()];
  for (std::size_t i = 0; i < met_after_.size(); ++i) {
    place_[met_after_[i]] = places[places.size() - met_after_.size() + i];
  }
  replace(after_, before_, kept, other);
  replace(before_, after_, kept, other);
}

}  // namespace emplace::learn
