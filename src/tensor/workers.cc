#include "tensor/workers.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace emplace {

Workers::Workers(std::vector<int> factors)
    : factors_(std::move(factors)), stride_(factors_.size()) {
  for (std::size_t level = factors_.size(); level-- > 0;) {
    EMPLACE_CHECK(factors_[level] > 1);
    stride_[level] = count_;
    count_ *= static_cast<Worker>(factors_[level]);
  }
  shares_.assign(count_, 1);
}

Workers::Workers(std::vector<int> factors, std::vector<std::int64_t> shares)
    : Workers(std::move(factors)) {
  EMPLACE_CHECK(shares.size() == count_);
  shares_ = std::move(shares);
  even_ = std::all_of(shares_.begin(), shares_.end(),
                      [&](std::int64_t share) { return share == shares_[0]; });
}

Worker Workers::with_digit(Worker worker, std::size_t level, int digit) const {
  return worker - static_cast<Worker>(this->digit(worker, level)) * stride_[level] +
         static_cast<Worker>(digit) * stride_[level];
}

std::vector<Worker> Workers::group_of(Worker worker, LevelSet levels) const {
  std::vector<Worker> group{worker};
  for (std::size_t level = 0; level < this->levels(); ++level) {
    if (!has_level(levels, level)) continue;
    std::vector<Worker> larger;
    for (const Worker member : group) {
      for (int digit = 0; digit < factors_[level]; ++digit) {
        larger.push_back(with_digit(member, level, digit));
      }
    }
    group = std::move(larger);
  }
  return group;
}

int Workers::group_size(LevelSet levels) const {
  int size = 1;
  for (std::size_t level = 0; level < this->levels(); ++level) {
    if (has_level(levels, level)) size *= factors_[level];
  }
  return size;
}

bool Workers::differ_only_in(Worker a, Worker b, LevelSet levels) const {
  for (std::size_t level = 0; level < this->levels(); ++level) {
    if (!has_level(levels, level) && digit(a, level) != digit(b, level)) return false;
  }
  return true;
}

tdl::Interval Workers::part(const tdl::Interval& range, Worker worker, std::size_t level) const {
  const int at = digit(worker, level);
  const tdl::Position size = range.size();
  const auto groups = static_cast<tdl::Position>(factors_[level]);
  if (even_) return {range.begin + size * at / groups, range.begin + size * (at + 1) / groups};
  const Worker first = worker - worker % (stride_[level] * static_cast<Worker>(groups));
  const auto share_before = [&](int group) {
    const auto begin = shares_.begin() + first;
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(stride_[level]) * group,
                           std::int64_t{0});
  };
  const std::int64_t total = share_before(factors_[level]);
  const auto cut = [&](int group) {
    const auto even = static_cast<tdl::Position>(static_cast<double>(size) *
                                                     static_cast<double>(share_before(group)) /
                                                     static_cast<double>(total) +
                                                 0.5);
    // Nobody goes away with nothing if that can be avoided.
    const tdl::Position after = groups - group;
    return size < groups ? size * group / groups
                         : std::clamp<tdl::Position>(even, group, size - after);
  };
  return {range.begin + cut(at), range.begin + cut(at + 1)};
}

Workers Workers::first(std::size_t levels) const {
  std::vector<int> factors(factors_.begin(),
                           factors_.begin() + static_cast<std::ptrdiff_t>(levels));
  Workers groups(std::move(factors));
  const Worker size = count_ / groups.count_;
  for (Worker group = 0; group < groups.count_; ++group) {
    const auto begin = shares_.begin() + static_cast<std::ptrdiff_t>(group) * size;
    groups.shares_[group] = std::accumulate(begin, begin + size, std::int64_t{0});
  }
  groups.even_ = even_;
  return groups;
}

Worker neighbour_before(const std::vector<Worker>& group, Worker worker) {
  const auto at = std::find(group.begin(), group.end(), worker);
  return at == group.begin() ? group.back() : *(at - 1);
}

std::vector<int> prime_factors(int number) {
  std::vector<int> factors;
  for (int prime = 2; prime * prime <= number; ++prime) {
    for (; number % prime == 0; number /= prime) factors.push_back(prime);
  }
  if (number > 1) factors.push_back(number);
  std::reverse(factors.begin(), factors.end());
  return factors;
}

}  // namespace emplace
