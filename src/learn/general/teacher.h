// Teaches one policy on many problems at once: the sum over graphs of what each would have it learn
// (GDP-batch; Placeto's workers on a family; one encoder for many graphs, as Mars has it for one).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"

#include "sim/placement.h"

#include "placer/context.h"

#include "learn/general/network.h"
#include "learn/nn/optimizer_settings.h"
#include <emplace/search.h>

namespace emplace::learn {

// One of the problems, and where its answer begins, for imitation.
struct Exercise {
  std::string name;
  std::shared_ptr<PlaceContext> context;
  std::optional<Placement> example = std::nullopt;
  double reference_seconds = 0;  // what times are told in multiples of
};

struct TeacherSettings {
  std::string kind = "gdp";
  GeneralNetwork network = {};
  std::string device = "cpu";  // of libtorch
  std::int64_t encoder_steps = 0;
  std::int64_t imitation_steps = 0;
  std::int64_t steps = 1000;
  std::int64_t exercises_per_step = 8;
  // How often a step has fewer devices than there are: any number of the fastest.
  double fewer_devices = 0.4;
  double imitation_rate = 3e-3;
  double learning_rate = 1e-3;
  double clip_norm = 1;
};

// After each step.
struct LessonReport {
  std::string stage;  // "encoder", "imitation", "practice"
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double likelihood = 0;     // of the examples, the mean over exercises (imitation)
  double relative_time = 0;  // of what was sampled over the reference, geometric mean (practice)
  double fitting_share = 0;
};

struct Taught {
  std::string policy;  // a policy file's bytes
  std::int64_t evaluations = 0;
  bool whole = true;  // else the budget was spent first
};

// `begin_from` may be a policy file's bytes; `card` is what the file says of itself; `on_step` may
// be empty; `save` is given a policy file's bytes every so often.
struct TeacherHooks {
  std::function<void(const LessonReport&)> on_step = {};
  std::function<void(std::string_view)> save = {};
  double save_seconds = 60;
};
Taught teach(std::vector<Exercise> exercises, const TeacherSettings& settings,
             const std::string& begin_from, const std::string& card, const Budget& budget,
             const Rng& rng, const TeacherHooks& hooks);

}  // namespace emplace::learn
