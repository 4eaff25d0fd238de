#include "sim/chain_walk.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace emplace {

ChainWalk::ChainWalk(const Problem& problem, const Placement& placement, const Timeline& timeline)
    : graph_(problem.graph()), placement_(placement), timeline_(timeline) {
  for (OpId op = 0; op < graph_.num_ops(); ++op) {
    if (timeline_.ops[op].finish > timeline_.ops[op].start) by_start_.push_back(op);
  }
  std::sort(by_start_.begin(), by_start_.end(),
            [&](OpId a, OpId b) { return begin_of(a) < begin_of(b); });
  arrivals_.resize(timeline_.transfers.size());
  std::iota(arrivals_.begin(), arrivals_.end(), 0U);
  std::sort(arrivals_.begin(), arrivals_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return destination(a) < destination(b); });
}

std::span<const OpId> ChainWalk::ran_on(DeviceId device) const {
  const auto first = std::partition_point(by_start_.begin(), by_start_.end(),
                                          [&](OpId op) { return placement_[op] < device; });
  const auto last = std::partition_point(first, by_start_.end(),
                                         [&](OpId op) { return placement_[op] == device; });
  return {first, last};
}

OpId ChainWalk::ran_before(OpId op) const {
  const auto found = std::lower_bound(by_start_.begin(), by_start_.end(), op,
                                      [&](OpId a, OpId b) { return begin_of(a) < begin_of(b); });
  if (found == by_start_.begin()) return kNoOp;
  const OpId before = *(found - 1);
  return placement_[before] == placement_[op] ? before : kNoOp;
}

OpId ChainWalk::last_op() const {
  const auto last =
      std::max_element(timeline_.ops.begin(), timeline_.ops.end(),
                       [](const OpSpan& a, const OpSpan& b) { return a.finish < b.finish; });
  return last == timeline_.ops.end() ? kNoOp : static_cast<OpId>(last - timeline_.ops.begin());
}

ChainWalk::Cause ChainWalk::latest_cause(OpId op) const {
  Cause latest;
  const auto consider = [&](const Cause& cause) {
    if (cause.time > latest.time) latest = cause;
  };
  for (const TensorId tensor : graph_.inputs(op)) {
    const OpId producer = graph_.producer(tensor);
    if (placement_[producer] == placement_[op]) {
      consider({timeline_.ops[producer].finish, producer});
    } else {
      const std::uint32_t transfer = arrival(tensor, placement_[op]);
      consider({timeline_.transfers[transfer].finish, producer, transfer});
    }
  }
  for (const OpId before : graph_.after(op)) consider({timeline_.ops[before].finish, before});
  return latest;
}

std::uint32_t ChainWalk::arrival(TensorId tensor, DeviceId device) const {
  const auto found = std::lower_bound(
      arrivals_.begin(), arrivals_.end(), std::pair(tensor, device),
      [&](std::uint32_t transfer, const auto& key) { return destination(transfer) < key; });
  EMPLACE_CHECK(found != arrivals_.end() && destination(*found) == std::pair(tensor, device));
  return *found;
}

}  // namespace emplace
