// The assignments that a search keeps: good ones that differ. Devices that differ in name only are
// matched before two assignments are compared.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

#include "stream/anneal.h"
#include "stream/level.h"

namespace emplace {

struct StreamMember {
  std::vector<DeviceId> device_of;
  StreamValue value;
};

class StreamPopulation {
 public:
  // Two members are at most this alike.
  static constexpr double kMostAlike = 0.85;

  StreamPopulation(const StreamLevel& level, std::size_t capacity);

  const std::vector<StreamMember>& members() const { return members_; }
  bool full() const { return members_.size() == capacity_; }
  const StreamMember& best() const;

  // A member that is much like others stands for all of them: it replaces them if it is better than
  // each, else it is dropped. Any other takes an empty place or that of the worst, if it is better.
  void add(StreamMember member);
  void clear() { members_.clear(); }

  // The share of the items, by weight, on which the two agree.
  double likeness(const std::vector<DeviceId>& a, const std::vector<DeviceId>& b) const;

 private:
  const StreamLevel& level_;
  std::size_t capacity_;
  std::vector<double> weight_;
  double total_weight_ = 0;
  std::vector<StreamMember> members_;
};

// Numbers of the classes of items that are together in both, for a StreamHierarchy's parts.
std::vector<std::uint32_t> overlay(const std::vector<DeviceId>& a, const std::vector<DeviceId>& b,
                                   DeviceId num_devices);

}  // namespace emplace
