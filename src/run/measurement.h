// Steps executed for real, and what was measured of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

#include "cost/problem.h"

#include "sim/placement.h"

#include "exec/runtime.h"

namespace emplace {

// Of several times: the median and the quartiles, between which half of them are, interpolated.
struct TimeSpread {
  Nanoseconds median = 0;
  Nanoseconds low = 0;
  Nanoseconds high = 0;

  // The half's width, in medians.
  double relative() const;
};
TimeSpread spread_of(std::vector<Nanoseconds> times);

struct MeasureSettings {
  int steps = 50;
  int warm_up = 10;  // steps before, which do not count
  std::uint64_t seed = 0;
  exec::Numbers numbers = exec::Numbers::kFloat32;
  bool fixed_order = false;  // exactly the simulated order of ops, not just its priorities
  exec::GpuLaunch gpu_launch = exec::GpuLaunch::kGraphs;
  InPlace in_place = InPlace::kSums;  // of a problem's steps: as it was compiled
  Nanoseconds deadline = 0;           // a step that takes longer fails; 0: none does
};

// What steps of one placement showed. If one failed, nothing else counts. Where it was cancelled,
// the steps until then do, if one was timed.
struct Measurement {
  std::vector<Nanoseconds> steps = {};           // those that count
  std::vector<double> losses = {};               // of all steps, warm-up included
  std::vector<Nanoseconds> op_times = {};        // by op: medians, of long runs over some steps
  std::vector<Bytes> temporary = {};             // by op: the most of any step
  std::vector<exec::Transfer> transfers = {};    // what was sent
  std::vector<Nanoseconds> transfer_times = {};  // medians
  exec::StepRecord typical = {};                 // the step in the middle, without temporary memory
  std::vector<exec::MemoryRecord> memory = {};   // by device
  std::vector<std::string> slow_types = {};  // ops that were not executed by a kernel of their own
  std::optional<exec::Failure> failure = std::nullopt;
  bool interrupted = false;  // fewer steps than asked for

  TimeSpread step() const { return spread_of(steps); }
};

// The devices of a cluster, ready to execute; one at a time in a process.
class Laboratory {
 public:
  // `done` is told after each step of whatever is measured, from this thread. Throws an Error that
  // names the device on which nothing can be executed. With other ranks in the options, each has a
  // laboratory and measures the same; rank 0's measurements are of all devices.
  explicit Laboratory(std::shared_ptr<const Cluster> cluster,
                      const exec::RuntimeOptions& options = {}, std::function<void()> done = {});

  const Cluster& cluster() const { return *cluster_; }
  std::vector<std::string> warnings() const { return runtime_->warnings(); }

  Measurement measure(const std::shared_ptr<const Graph>& graph, const Placement& placement,
                      const exec::ProgramOrder& order, const MeasureSettings& settings);
  // How long work that is always the same takes now, on all devices at once: what is measured
  // minutes apart may differ because the machine does. Nothing where memory is too short for it, or
  // when cancelled.
  std::optional<Nanoseconds> reference_step();
  // How long a tensor of that size takes.
  Nanoseconds send(DeviceId from, DeviceId to, Bytes bytes);

 private:
  Nanoseconds send_by_program(DeviceId from, DeviceId to, Bytes bytes);

  std::shared_ptr<const Cluster> cluster_;
  const std::atomic<bool>* cancelled_;
  bool on_ranks_;
  std::unique_ptr<exec::Runtime> runtime_;
  std::function<void()> done_;
  std::unique_ptr<exec::Program> reference_;
};

// What numbers are called where users choose them.
inline constexpr std::array<std::pair<const char*, exec::Numbers>, 4> kNumbers = {{
    {"float32", exec::Numbers::kFloat32},
    {"float64", exec::Numbers::kFloat64},
    {"own", exec::Numbers::kOwn},
    {"tf32", exec::Numbers::kTf32},
}};
std::optional<exec::Numbers> numbers_named(std::string_view name);

// What to say of a model's numbers that are executed as others: floating ones that are neither of
// 32 bits nor asked for, and integers of less than 64 bits where they are more than a hundredth of
// all bytes.
std::vector<std::string> number_warnings(const Graph& graph, exec::Numbers numbers);

// The order in which the simulator takes ready ops, or exactly its sequence; with GPUs, always
// that.
exec::ProgramOrder order_of(const Problem& problem, const Placement& placement,
                            const Schedule& schedule, bool fixed);

// A measured step as a timeline, to look at beside the simulated one.
Timeline measured_timeline(const Problem& problem, const Placement& placement,
                           const Measurement& measurement);

}  // namespace emplace
