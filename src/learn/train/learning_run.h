// What a placer asks to have learned, beside the system that learns.
#pragma once

#include <optional>
#include <string>

#include "sim/placement.h"

namespace emplace::learn {

struct LearningRun {
  std::string key;                           // of the placer: a checkpoint must be of the same
  std::optional<Placement> begin_from = {};  // a placement to imitate first
};

}  // namespace emplace::learn
