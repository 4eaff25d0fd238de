#include "placers/common/greedy.h"

#include <numeric>
#include <optional>

#include "base/check.h"

#include "placer/linked_devices.h"

#include "placers/common/choices.h"
#include "placers/common/traffic.h"

namespace emplace {
namespace {

DeviceId best_device(GroupId group, std::span<const DeviceId> devices,
                     std::span<const Nanoseconds> sent, const MemoryLedger& ledger,
                     const GroupScore& score) {
  DeviceId best = kNoDevice;
  bool best_fits = false;
  double least = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (sent[i] == Traffic::kUnreachable) continue;
    const bool fits = ledger.fits(group, devices[i]);
    const double own = score(group, devices[i], sent[i]);
    if (best != kNoDevice && (fits != best_fits ? best_fits : own >= least)) continue;
    best = devices[i];
    best_fits = fits;
    least = own;
  }
  return best;
}

// Nothing when a group's neighbours have no device in common that they are linked with.
std::optional<std::vector<DeviceId>> try_devices(const Problem& problem,
                                                 std::span<const DeviceId> devices,
                                                 std::span<const GroupId> order,
                                                 MemoryLedger& ledger, const GroupScore& score) {
  const DeviceChoices choices(problem, devices);
  Traffic traffic(problem);
  std::vector<DeviceId> device_of_group(problem.num_groups(), kNoDevice);
  for (const GroupId group : order) {
    if (choices.of(group).size() > 1) continue;
    device_of_group[group] = choices.of(group).front();
    ledger.add(group, device_of_group[group]);
  }
  for (const GroupId group : order) {
    if (device_of_group[group] != kNoDevice) continue;
    const std::span<const DeviceId> choice = choices.of(group);
    const auto sent = traffic.measure(group, choice, device_of_group);
    const DeviceId best = best_device(group, choice, sent, ledger, score);
    if (best == kNoDevice) return std::nullopt;
    device_of_group[group] = best;
    ledger.add(group, best);
  }
  return device_of_group;
}

}  // namespace

std::vector<DeviceId> place_by_score(const Problem& problem, std::span<const GroupId> order,
                                     MemoryLedger& ledger, const GroupScore& score) {
  std::vector<DeviceId> all(problem.num_devices());
  std::iota(all.begin(), all.end(), DeviceId{0});
  const MemoryLedger untouched = ledger;
  if (auto placed = try_devices(problem, all, order, ledger, score)) return std::move(*placed);
  ledger = untouched;
  auto placed = try_devices(problem, mutually_linked_devices(problem), order, ledger, score);
  EMPLACE_CHECK(placed.has_value());
  return std::move(*placed);
}

}  // namespace emplace
