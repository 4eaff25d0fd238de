#include "learn/train/run_state.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

#include "cost/problem_fingerprint.h"

#include "learn/methods/saved_devices.h"

namespace emplace::learn {
namespace {

// What a checkpoint may say that came before it: a hundred years, and what can still be added to.
constexpr double kMostSeconds = 3.2e9;
constexpr Nanoseconds kMostSimulated = std::numeric_limits<Nanoseconds>::max() / 2;

std::uint64_t fingerprint(const Problem& problem) {
  Fingerprint costs;
  add_problem(costs, problem);
  return costs.value();
}

std::vector<std::int64_t> numbers(const Rng::State& rng) {
  return {rng.begin(), rng.end()};
}

}  // namespace

void put_rng(StateWriter& state, const std::string& name, const Rng::State& rng) {
  state.put(name, numbers(rng));
}

Rng::State rng_of(const StateReader& state, const std::string& name) {
  const std::vector<std::int64_t> words = state.integers(name);
  Rng::State rng{};
  if (words.size() != rng.size()) state.refuse(name, fmt::format("{} numbers", rng.size()));
  std::copy(words.begin(), words.end(), rng.begin());
  return rng;
}

double seconds_of(const StateReader& state) {
  return state.real("seconds", 0, kMostSeconds);
}

RunState::RunState(Environment& environment, std::string key, const Rng& rng)
    : environment_(environment), key_(std::move(key)), began_with_(numbers(rng.state())) {}

RunState::Reached RunState::reached() const {
  return {environment_.context().evaluations(), simulated_before_ + environment_.simulated_time()};
}

double RunState::seconds() const {
  return seconds_before_ + environment_.budget().elapsed_seconds();
}

// What must be the same for a checkpoint to make sense.
std::string RunState::subject() const {
  const Problem& problem = environment_.problem();
  const char* goal = environment_.context().objective().match(
      [](const StepTime&) { return "the step"; },
      [](const StreamPeriod& stream) {
        return stream.overlap == Overlap::kFull ? "the period" : "the period without overlap";
      });
  const std::string& scheduler = environment_.context().evaluator().scheduler();
  const std::string order = scheduler == kOwnSchedule ? "" : " under " + scheduler;
  return fmt::format("{} for {} of {}{}: {} ops in {} groups on {} devices, costs {:016x}", key_,
                     goal, problem.graph().name(), order, problem.num_ops(), problem.num_groups(),
                     problem.num_devices(), fingerprint(problem));
}

void RunState::save(StateWriter& state, const Reached& reached) const {
  state.put("subject", subject());
  state.put("began_with", began_with_);
  state.put("evaluations", reached.evaluations);
  state.put("seconds", seconds());
  state.put("simulated_time", reached.simulated);
  const std::optional<Solution> best = environment_.context().incumbent().best();
  put_devices(state, "best", best ? best->placement : Placement{});
  state.put("best_priorities", best ? best->schedule.priorities : std::vector<std::int64_t>{});
}

void RunState::load(const StateReader& state) {
  const std::string saved = state.text("subject");
  if (saved != subject()) {
    fail_input("{}: a checkpoint of {}; expected one of {}", state.file_name(), saved, subject());
  }
  if (state.integers("began_with") != began_with_) {
    fail_input("{}: a checkpoint of a run with another seed", state.file_name());
  }
  seconds_before_ = seconds_of(state);
  simulated_before_ = state.integer("simulated_time", 0, kMostSimulated);
  PlaceContext& context = environment_.context();
  const Problem& problem = environment_.problem();
  Placement placement = saved_placement(state, "best", problem);
  const std::int64_t evaluations = state.count("evaluations");
  if (!placement.empty()) {
    Solution best{
        std::move(placement), saved_schedule(state, "best_priorities", problem), {}, key_};
    best.value = context.evaluator().evaluate(best.placement, best.schedule);
    context.incumbent().offer(std::move(best));
  }
  context.evaluator().count(evaluations - context.evaluations());
}

}  // namespace emplace::learn
