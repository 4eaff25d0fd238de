// emplace/execute.h over run and report.
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include <emplace/execute.h>

#include "base/error.h"

#include "sim/simulator.h"

#include "io/trace_json.h"
#include "report/execution_report.h"
#include "report/profile_report.h"
#include "run/execution.h"
#include "run/profile.h"
#include "run/ticker.h"

namespace emplace {

struct ExecutionResult::State {
  Execution execution;
  std::string failure;  // of memory
};

struct ProfileResult::State {
  Profile profile;
  std::shared_ptr<const Cluster> cluster;
  std::vector<std::string> notes;
};

namespace {

exec::Numbers require_numbers(const std::string& name) {
  if (const auto numbers = numbers_named(name)) return *numbers;
  fail_option("numbers '{}': expected float32, float64, own or tf32", name);
}

void require_count(const char* what, int count, int least) {
  if (count < least) fail_option("{} {}: expected {} or more", what, count, least);
}

bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

// One program executes steps at a time. Who waits can still be cancelled.
std::unique_lock<std::timed_mutex> whole_machine(const std::atomic<bool>* cancelled) {
  static std::timed_mutex machine;
  std::unique_lock<std::timed_mutex> lock(machine, std::defer_lock);
  while (!lock.try_lock_for(std::chrono::milliseconds(20))) {
    if (is_set(cancelled)) fail(ErrorKind::kSystem, "cancelled before a step was executed");
  }
  return lock;
}

std::shared_ptr<const Cluster> shared_cluster(const std::shared_ptr<const Problem>& problem) {
  return {problem, &problem->cluster()};
}

void require_executable(const Problem& problem) {
  if (problem.compile_options().fuse) {
    fail_option("fused kernels can only be simulated: compile the problem without fuse");
  }
}

}  // namespace

ExecutionResult run(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                    const Schedule& schedule, const RunOptions& options) {
  require_count("steps", options.steps, 1);
  require_count("warm_up", options.warm_up, 0);
  require_executable(*problem);
  check_placement(*problem, placement);
  const MeasureSettings settings{
      .steps = options.steps,
      .warm_up = options.warm_up,
      .seed = options.seed,
      .numbers = require_numbers(options.numbers),
      .fixed_order = options.fixed_order,
      .gpu_launch = options.launch_each ? exec::GpuLaunch::kEach : exec::GpuLaunch::kGraphs};
  const auto lock = whole_machine(options.cancelled);
  std::atomic<int> done{0};
  const Ticker ticker(options.on_progress, [&] {
    return fmt::format("step {} of {}", done.load(), settings.warm_up + settings.steps);
  });
  Laboratory laboratory(shared_cluster(problem),
                        {.cancelled = options.cancelled, .limit_memory = options.limit_memory},
                        [&] { ++done; });
  ExecutionResult::State state{execute(laboratory, problem, placement, schedule, settings), {}};
  if (state.execution.failed()) {
    const exec::Failure& failure = *state.execution.measurement.failure;
    using Kind = exec::Failure::Kind;
    if (failure.kind == Kind::kCancelled) {
      fail(ErrorKind::kSystem, "cancelled before a step was timed");
    }
    if (failure.kind != Kind::kMemory) fail(ErrorKind::kSystem, "{}", failure.text);
    state.failure = failure.text;
  }
  return ExecutionResult(std::make_shared<const ExecutionResult::State>(std::move(state)));
}

bool ExecutionResult::fits() const {
  return state_->failure.empty();
}
const std::string& ExecutionResult::failure() const {
  return state_->failure;
}
Nanoseconds ExecutionResult::time() const {
  return state_->execution.measurement.step().median;
}
Nanoseconds ExecutionResult::low() const {
  return state_->execution.measurement.step().low;
}
Nanoseconds ExecutionResult::high() const {
  return state_->execution.measurement.step().high;
}
Nanoseconds ExecutionResult::predicted() const {
  return state_->execution.predicted.step;
}
Nanoseconds ExecutionResult::oracle() const {
  return state_->execution.oracle;
}
std::optional<double> ExecutionResult::drift() const {
  return state_->execution.drift;
}
bool ExecutionResult::interrupted() const {
  return state_->execution.measurement.interrupted;
}
const std::vector<Nanoseconds>& ExecutionResult::steps() const {
  return state_->execution.measurement.steps;
}
const std::vector<double>& ExecutionResult::losses() const {
  return state_->execution.measurement.losses;
}
const std::vector<Nanoseconds>& ExecutionResult::op_times() const {
  return state_->execution.measurement.op_times;
}
std::vector<Bytes> ExecutionResult::peaks() const {
  std::vector<Bytes> peaks;
  for (const exec::MemoryRecord& memory : state_->execution.measurement.memory) {
    peaks.push_back(memory.peak);
  }
  return peaks;
}
const Timeline& ExecutionResult::measured_timeline() const {
  return state_->execution.measured;
}
const Timeline& ExecutionResult::predicted_timeline() const {
  return state_->execution.predicted;
}
const Placement& ExecutionResult::placement() const {
  return state_->execution.placement;
}
const std::vector<std::string>& ExecutionResult::notes() const {
  return state_->execution.warnings;
}
std::string ExecutionResult::to_text() const {
  return emplace::to_text(state_->execution);
}
std::string ExecutionResult::to_json() const {
  return emplace::to_json(state_->execution);
}
std::string ExecutionResult::trace_json() const {
  const Execution& execution = state_->execution;
  if (execution.failed()) return "";
  return write_trace_json(*execution.problem, execution.placement, {"measured", execution.measured},
                          {"predicted", execution.predicted});
}

ProfileResult profile(const std::shared_ptr<const Problem>& problem,
                      const ProfileOptions& options) {
  require_count("phases", options.phases, 1);
  require_count("steps", options.steps, 1);
  require_count("warm_up", options.warm_up, 0);
  require_count("proposals", options.proposals, 0);
  require_executable(*problem);
  ProfileSettings settings{
      .phases = options.phases, .proposals = options.proposals, .busy = options.busy};
  settings.measure.steps = options.steps;
  settings.measure.warm_up = options.warm_up;
  settings.measure.numbers = require_numbers(options.numbers);
  const auto graph = std::shared_ptr<const Graph>(problem, &problem->graph());
  const auto cluster = shared_cluster(problem);
  const Profiler profiler(graph, cluster, settings);

  const auto lock = whole_machine(options.cancelled);
  ProfileProgress at;
  const Ticker ticker(options.on_progress, [&] { return profiler.describe(at); });
  Laboratory laboratory(cluster, {.cancelled = options.cancelled}, [&] { ++at.steps; });
  ProfileResult::State state{.profile = {}, .cluster = {}, .notes = laboratory.warnings()};
  for (const std::string& warning : number_warnings(*graph, settings.measure.numbers)) {
    state.notes.push_back(warning);
  }
  std::vector<ProfilePhase> phases;
  while (at.phase < settings.phases) {
    phases.push_back(profiler.measure(laboratory, at.phase));
    at.begin_phase(at.phase + 1);
  }
  state.profile = profiler.combine(phases);
  profiler.learn_transfers(laboratory, state.profile,
                           [&](int number) { at.begin_proposal(number); });
  if (is_set(options.cancelled)) fail(ErrorKind::kSystem, "cancelled before all was measured");
  state.cluster = std::make_shared<const Cluster>(state.profile.cluster);
  return ProfileResult(std::make_shared<const ProfileResult::State>(std::move(state)));
}

std::shared_ptr<const Graph> ProfileResult::graph() const {
  return state_->profile.graph;
}
std::shared_ptr<const Cluster> ProfileResult::cluster() const {
  return state_->cluster;
}
double ProfileResult::drift() const {
  return state_->profile.drift;
}
const std::vector<std::string>& ProfileResult::notes() const {
  return state_->notes;
}
std::string ProfileResult::to_text() const {
  return emplace::to_text(state_->profile);
}
std::string ProfileResult::to_json() const {
  return emplace::to_json(state_->profile);
}

}  // namespace emplace
