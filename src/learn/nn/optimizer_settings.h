// How gradient steps are taken, named without libtorch.
#pragma once

#include <cstdint>
#include <string_view>

namespace emplace::learn {

// Parameters that differ from the others in how far a step goes: those whose names begin so.
struct OptimizerPart {
  std::string_view prefix = {};
  double learning_rate = 0;  // at first; it falls as that of the others. 0: theirs
  double clip_norm = 0;      // of their own gradient; 0: clipped together with the others
};

struct OptimizerSettings {
  bool adam = true;
  double learning_rate = 1e-3;
  // The rate falls linearly to this share of itself over so many steps; 0: it stays.
  double final_share = 1;
  std::int64_t decay_steps = 0;
  double clip_norm = 0;  // 0: no clipping
  // Besides, it is multiplied by `stair_factor` every `stair_steps` steps after the first
  // `stairs_after`.
  double stair_factor = 1;
  std::int64_t stair_steps = 50;
  std::int64_t stairs_after = 400;
  OptimizerPart part = {};
};

}  // namespace emplace::learn
