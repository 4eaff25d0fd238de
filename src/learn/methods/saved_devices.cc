#include "learn/methods/saved_devices.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>

#include "base/error.h"

namespace emplace::learn {
namespace {

std::vector<DeviceId> none_or(const StateReader& state, const std::string& name, std::size_t count,
                              DeviceId num_devices) {
  if (state.integers(name).empty()) return {};
  const std::vector<std::int64_t> numbers = state.indices(name, count, num_devices);
  return {numbers.begin(), numbers.end()};
}

}  // namespace

void put_devices(StateWriter& state, const std::string& name,
                 const std::vector<DeviceId>& devices) {
  state.put(name, std::vector<std::int64_t>(devices.begin(), devices.end()));
}

std::vector<DeviceId> devices_of_units(const StateReader& state, const std::string& name,
                                       const UnitGraph& units) {
  std::vector<DeviceId> devices = none_or(state, name, units.size(), units.num_devices());
  for (UnitId unit = 0; unit < devices.size(); ++unit) {
    if (!units.allowed(unit, devices[unit])) {
      state.refuse(name, fmt::format("a device for unit {} that it may use", unit));
    }
  }
  return devices;
}

Placement saved_placement(const StateReader& state, const std::string& name,
                          const Problem& problem) {
  Placement placement = none_or(state, name, problem.num_ops(), problem.num_devices());
  if (!placement.empty()) {
    with_context(state.file_name() + ": '" + name + "'",
                 [&] { check_placement(problem, placement); });
  }
  return placement;
}

Schedule saved_schedule(const StateReader& state, const std::string& name, const Problem& problem) {
  Schedule schedule{state.integers(name)};
  if (!schedule.fifo() && schedule.priorities.size() != problem.num_ops()) {
    state.refuse(name, fmt::format("none, or one for each of {} ops", problem.num_ops()));
  }
  return schedule;
}

double best_runtime_of(const StateReader& state) {
  return state.real("best_runtime", std::numeric_limits<double>::lowest(),
                    std::numeric_limits<double>::infinity());
}

std::vector<DeviceId> device_set(const StateReader& state, const std::string& name,
                                 DeviceId num_devices) {
  const std::vector<std::int64_t> numbers = state.integers(name);
  const bool ascending =
      std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end();
  if (numbers.empty() || !ascending) state.refuse(name, "devices, ascending");
  state.indices(name, numbers.size(), num_devices);
  return {numbers.begin(), numbers.end()};
}

}  // namespace emplace::learn
