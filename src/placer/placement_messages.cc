#include "placer/placement_messages.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "base/error.h"

namespace emplace {
namespace {

// A byte for each op is enough for nearly every cluster.
constexpr DeviceId kSmallCluster = std::numeric_limits<std::uint8_t>::max();

template <class Number>
Placement take_devices(dist::Reader& reader, const Problem& problem) {
  const std::vector<Number> devices = reader.numbers<Number>();
  if (devices.size() != problem.num_ops()) {
    fail_input("a placement is of {} ops; expected {}", devices.size(), problem.num_ops());
  }
  for (const Number device : devices) {
    if (device >= problem.num_devices()) {
      fail_input("a placement uses device {}; expected less than {}", device,
                 problem.num_devices());
    }
  }
  return {devices.begin(), devices.end()};
}

}  // namespace

void put_placement(dist::Writer& writer, const Placement& placement, const Problem& problem) {
  if (problem.num_devices() <= kSmallCluster) {
    writer.numbers(std::vector<std::uint8_t>(placement.begin(), placement.end()));
  } else {
    writer.numbers(std::vector<std::uint16_t>(placement.begin(), placement.end()));
  }
}

Placement take_sample(dist::Reader& reader, const Problem& problem) {
  return problem.num_devices() <= kSmallCluster ? take_devices<std::uint8_t>(reader, problem)
                                                : take_devices<std::uint16_t>(reader, problem);
}

Placement take_placement(dist::Reader& reader, const Problem& problem) {
  Placement placement = take_sample(reader, problem);
  check_placement(problem, placement);
  return placement;
}

void put(dist::Writer& writer, const Evaluation& value) {
  writer.number(value.step).number(value.overflow);
}

Evaluation take_value(dist::Reader& reader) {
  Evaluation value;
  value.step = reader.number<Nanoseconds>();
  value.overflow = reader.number<Bytes>();
  if (value.step < 0 || value.overflow < 0) fail_input("a placement's value is negative");
  return value;
}

}  // namespace emplace
