// A placement's exact step: how long it takes, what every device and channel does when, and how
// much memory it needs (docs/simulator.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <emplace/problem.h>
#include <emplace/types.h>

namespace emplace {

using Placement = std::vector<DeviceId>;  // by op

// In which order a device takes the ops that are ready: first come, first served when there are no
// priorities; else the one of the highest priority, then of the lowest index.
struct Schedule {
  std::vector<std::int64_t> priorities;  // by op, or empty

  bool fifo() const { return priorities.empty(); }
};

enum class Overlap {
  kFull,  // devices and channels work side by side
  kNone,  // a device also pays for what it sends and receives
};

// The time of one step.
struct StepTime {
  friend bool operator==(const StepTime&, const StepTime&) = default;
};

// The period of a stream of steps.
struct StreamPeriod {
  Overlap overlap = Overlap::kFull;

  friend bool operator==(const StreamPeriod&, const StreamPeriod&) = default;
};

// What makes one placement better than another. An objective is one of a closed set of types, each
// with its own settings; whoever must treat them differently says what to do for every one
// (`match`), so that the compiler finds all such places when another is added.
class Objective {
 public:
  constexpr Objective() = default;  // the time of one step
  constexpr Objective(StepTime) {}  // NOLINT(google-explicit-constructor)
  constexpr Objective(StreamPeriod period)
      : goal_(period) {}  // NOLINT(google-explicit-constructor)

  // Calls the one of the functions that takes this objective's type; there is one for each.
  template <class... Cases>
  constexpr decltype(auto) match(Cases&&... cases) const {
    return std::visit(Overloaded<Cases...>{std::forward<Cases>(cases)...}, goal_);
  }

  // Whether the order in which ready ops run makes a difference.
  constexpr bool order_matters() const {
    return match([](const StepTime&) { return true; }, [](const StreamPeriod&) { return false; });
  }
  // What is made as short as possible: "step time", "period".
  constexpr std::string_view quantity() const {
    return match([](const StepTime&) { return std::string_view("step time"); },
                 [](const StreamPeriod&) { return std::string_view("period"); });
  }

  friend bool operator==(const Objective&, const Objective&) = default;

 private:
  template <class... Cases>
  struct Overloaded : Cases... {
    using Cases::operator()...;
  };
  template <class... Cases>
  Overloaded(Cases...) -> Overloaded<Cases...>;

  std::variant<StepTime, StreamPeriod> goal_;
};

struct OpSpan {
  Nanoseconds start = 0;
  Nanoseconds finish = 0;
};

// A tensor on its way. A multicast transfer appears once per destination, with the same times.
struct Transfer {
  TensorId tensor = 0;
  DeviceId from = 0;
  DeviceId to = 0;
  ChannelId channel = kNoChannel;  // none for a transfer that takes no time
  Nanoseconds queued = 0;
  Nanoseconds start = 0;
  Nanoseconds finish = 0;
  bool shared = false;  // served by the multicast transfer of the entry before it
};

struct DeviceUse {
  Nanoseconds busy = 0;  // sum of its ops' durations
  Bytes peak = 0;
  Bytes capacity = 0;
};

struct ChannelUse {
  Nanoseconds busy = 0;  // sum of its transfers' lengths, without holds
  Bytes bytes = 0;
  std::int64_t transfers = 0;
};

// Everything that happened in one simulated step.
struct Timeline {
  Nanoseconds step = 0;
  std::vector<OpSpan> ops;          // by op
  std::vector<Transfer> transfers;  // in the order in which they were queued
  std::vector<DeviceUse> devices;
  std::vector<ChannelUse> channels;
  std::int64_t num_transfers = 0;  // a multicast counts once
  Bytes transfer_bytes = 0;

  bool fits() const {
    for (const DeviceUse& device : devices) {
      if (device.peak > device.capacity) return false;
    }
    return true;
  }
};

// Throws an Error that names the op when the placement has the wrong size, separates ops that must
// share a device, uses a device that an op may not, or sends a tensor where there is no link.
Timeline simulate(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                  const Schedule& schedule = {});

// The same for many placements, on several threads: step time, and bytes above capacity over all
// devices (0: it fits).
struct StepValue {
  Nanoseconds step = 0;
  Bytes overflow = 0;
};
std::vector<StepValue> simulate_all(const std::shared_ptr<const Problem>& problem,
                                    const std::vector<Placement>& placements, int threads = 1);

// emplace.placement/1, read and written; and the timeline for Perfetto or chrome://tracing.
struct SavedPlacement {
  Placement placement;
  Schedule schedule;
};
SavedPlacement read_placement(const std::string& path, const Problem& problem);
std::string trace_json(const Problem& problem, const Placement& placement,
                       const Timeline& timeline);

}  // namespace emplace
