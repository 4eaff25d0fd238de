// What training one policy on many graphs is asked for and what comes of it, without libtorch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/search.h>

#include "base/options.h"
#include "base/rng.h"

#include "sim/placement.h"

#include "placer/context.h"

#include "dist/crew.h"
#include "dist/member.h"
#include "learn/general/network.h"

namespace emplace::learn {

// One of the problems, and perhaps a placement to imitate.
struct TrainingTask {
  std::string name;
  std::shared_ptr<PlaceContext> context;
  std::optional<Placement> example = std::nullopt;
  double reference_seconds = 0;  // what times are told in multiples of
};

struct MultiGraphSettings {
  std::string kind = "gdp";
  GeneralNetwork network = {};
  std::string device = "cpu";  // of libtorch
  std::int64_t encoder_steps = 0;
  std::int64_t imitation_steps = 0;
  std::int64_t steps = 1000;
  std::int64_t tasks_per_step = 8;
  // How often a step has fewer devices than there are: any number of the fastest.
  double fewer_devices = 0.4;
  double imitation_rate = 3e-3;
  double learning_rate = 1e-3;
  double clip_norm = 1;

  static OptionSchema<MultiGraphSettings> schema();
};

inline OptionSchema<MultiGraphSettings> MultiGraphSettings::schema() {
  using Settings = MultiGraphSettings;
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
  return OptionSchema<Settings>{}
      .choice("policy", &Settings::kind, general_kinds(), "Whose policy")
      .integer("encoder_steps", &Settings::encoder_steps, 0, kMostSteps,
               "Steps in which the graph's encoder learns without placements (mars)")
      .integer("imitation_steps", &Settings::imitation_steps, 0, kMostSteps, "Steps of imitation")
      .integer("steps", &Settings::steps, 0, kMostSteps, "Steps of practice")
      .integer("tasks_per_step", &Settings::tasks_per_step, 1, 100'000,
               "Whose gradients are summed")
      .real("learning_rate", &Settings::learning_rate, 1e-9, 1, "Of practice")
      .integer("width", nested(&Settings::network, &GeneralNetwork::width), 2, 4096,
               "Of the network; even")
      .integer("layers", nested(&Settings::network, &GeneralNetwork::layers), 0, 64,
               "Of the network")
      .flag("superposition", nested(&Settings::network, &GeneralNetwork::superposition),
            "Condition dense layers on the whole graph (gdp)")
      .text("device", &Settings::device, "cpu, or cuda:0", "Where networks compute");
}

// After each step.
struct TrainingReport {
  std::string phase;      // "encoder", "imitation", "practice"
  std::int64_t step = 0;  // of the phase
  std::int64_t steps = 0;
  std::int64_t taken = 0;        // of all phases, those before a resumed run included
  std::int64_t evaluations = 0;  // so far, likewise
  double seconds = 0;            // so far, likewise
  double likelihood = 0;         // of the examples, the mean over tasks (imitation)
  double relative_time = 0;  // of what was sampled over the reference, geometric mean (practice)
  double fitting_share = 0;
};

struct TrainedPolicy {
  std::string policy;  // a policy file's bytes
  std::int64_t evaluations = 0;
  std::int64_t steps = 0;  // of all phases
  bool whole = true;       // else the budget was spent first
};

// What is told while it trains; each may be empty.
struct TrainingHooks {
  std::function<void(const TrainingReport&)> on_step = {};
  // Takes a policy file's bytes to a safe place, every so often.
  std::function<void(std::string_view)> save = {};
  double save_seconds = 60;
  // The same of what it takes to go on where it was; also at the end.
  std::function<void(std::string_view)> save_state = {};
  double save_state_seconds = 30;
  // Such a state's bytes to go on from, and what to call it in errors; empty: from the beginning.
  std::string resume = {};
  std::string resume_name = {};
  // Others to share the tasks of a step with, which have a `TrainingHelper` of the same tasks. The
  // policy does not depend on them.
  dist::Crew* crew = nullptr;
};

// What a rank that helps is told to do: the first number of a task.
enum class TrainingRankTask : std::uint8_t { kPreparation, kExercises };

// Such a rank's part of the steps.
class TrainingHelper {
 public:
  virtual ~TrainingHelper() = default;
  // `task`: of kExercises, without that number.
  virtual std::string work(dist::Reader& task, dist::Line& line) = 0;
};

}  // namespace emplace::learn
