// Transfers under way on a channel that carries any number at once: which of them ends next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace emplace {

class PassingTransfers {
 public:
  struct Item {
    Nanoseconds end;
    std::uint32_t made;  // the transfer's number
  };

  bool empty() const { return items_.empty(); }
  // Of one or more.
  Nanoseconds next_end() const { return items_.front().end; }
  // In no particular order.
  const std::vector<Item>& items() const { return items_; }

  void add(Nanoseconds end, std::uint32_t made) {
    items_.push_back({end, made});
    std::push_heap(items_.begin(), items_.end(), later);
  }
  // The one that ends next.
  std::uint32_t take() {
    std::pop_heap(items_.begin(), items_.end(), later);
    const std::uint32_t made = items_.back().made;
    items_.pop_back();
    return made;
  }
  void clear() { items_.clear(); }

 private:
  static bool later(const Item& a, const Item& b) {
    return a.end != b.end ? a.end > b.end : a.made > b.made;
  }

  std::vector<Item> items_;
};

}  // namespace emplace
