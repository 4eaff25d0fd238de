#include "placers/common/choices.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/check.h"

namespace emplace {

DeviceChoices::DeviceChoices(const Problem& problem, std::span<const DeviceId> devices)
    : set_of_(problem.num_groups()) {
  // Groups with one set of allowed devices share its storage; only looked up, never iterated.
  std::map<const DeviceId*, std::uint32_t> set_of_storage;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    const std::span<const DeviceId> allowed = problem.allowed_devices(group);
    const auto [entry, is_new] =
        set_of_storage.try_emplace(allowed.data(), static_cast<std::uint32_t>(sets_.size()));
    if (is_new) {
      std::vector<DeviceId>& set = sets_.emplace_back();
      std::set_intersection(allowed.begin(), allowed.end(), devices.begin(), devices.end(),
                            std::back_inserter(set));
      EMPLACE_CHECK(!set.empty());
    }
    set_of_[group] = entry->second;
  }
}

Nanoseconds group_duration(const Problem& problem, GroupId group, DeviceId device) {
  Nanoseconds sum = 0;
  for (const OpId op : problem.group_ops(group)) sum += problem.duration(op, device);
  return sum;
}

Nanoseconds group_mean_duration(const Problem& problem, GroupId group) {
  Nanoseconds sum = 0;
  for (const OpId op : problem.group_ops(group)) sum += problem.mean_duration(op);
  return sum;
}

DeviceId fastest_for(const Problem& problem, GroupId group, std::span<const DeviceId> devices) {
  EMPLACE_CHECK(!devices.empty());
  DeviceId best = devices.front();
  Nanoseconds least = group_duration(problem, group, best);
  for (const DeviceId device : devices.subspan(1)) {
    const Nanoseconds duration = group_duration(problem, group, device);
    if (duration >= least) continue;
    least = duration;
    best = device;
  }
  return best;
}

std::vector<DeviceId> devices_with_room(const MemoryLedger& ledger, GroupId group,
                                        std::span<const DeviceId> devices) {
  std::vector<DeviceId> result;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(result),
               [&](DeviceId device) { return ledger.fits(group, device); });
  if (!result.empty()) return result;
  DeviceId roomiest = devices.front();
  for (const DeviceId device : devices) {
    if (ledger.left(device) > ledger.left(roomiest)) roomiest = device;
  }
  return {roomiest};
}

}  // namespace emplace
