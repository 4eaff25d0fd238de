// Who shares the work, as a tree: every level divides a group of workers into `factor` groups, the
// first level between those that are farthest from each other. A dimension that is cut on a level
// is divided among the groups of that level, in proportion to what each group can do.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tdl/index.h"

namespace emplace {

using Worker = std::uint32_t;

// Levels of the tree as bits.
using LevelSet = std::uint32_t;
constexpr LevelSet level_set(std::size_t level) {
  return LevelSet{1} << level;
}
constexpr bool has_level(LevelSet set, std::size_t level) {
  return (set >> level & 1) != 0;
}

class Workers {
 public:
  // Workers that can all do as much.
  explicit Workers(std::vector<int> factors);
  // By worker: how much it can do, in any unit.
  Workers(std::vector<int> factors, std::vector<std::int64_t> shares);

  Worker count() const { return count_; }
  std::size_t levels() const { return factors_.size(); }
  int factor(std::size_t level) const { return factors_[level]; }
  const std::vector<int>& factors() const { return factors_; }
  // Which of the level's groups the worker is in.
  int digit(Worker worker, std::size_t level) const {
    return static_cast<int>(worker / stride_[level]) % factors_[level];
  }
  Worker with_digit(Worker worker, std::size_t level, int digit) const;
  // Those that differ from the worker in these levels' digits alone, itself among them, in order;
  // and how many these are.
  std::vector<Worker> group_of(Worker worker, LevelSet levels) const;
  int group_size(LevelSet levels) const;
  bool differ_only_in(Worker a, Worker b, LevelSet levels) const;

  // The worker's part of a range that is cut on this level. Parts of a range that has at least as
  // many elements as there are groups are not empty.
  tdl::Interval part(const tdl::Interval& range, Worker worker, std::size_t level) const;

  // The first levels alone, whose groups are its workers.
  Workers first(std::size_t levels) const;

 private:
  std::vector<int> factors_;
  std::vector<Worker> stride_;        // by level: workers in one of its groups
  std::vector<std::int64_t> shares_;  // by worker
  Worker count_ = 1;
  bool even_ = true;
};

// Who comes before the worker in the group, as in a ring.
Worker neighbour_before(const std::vector<Worker>& group, Worker worker);

// The factors of a number, largest first; none for 1.
std::vector<int> prime_factors(int number);

}  // namespace emplace
