// How gradient steps are taken, named without libtorch.
#pragma once

#include <cstdint>

namespace emplace::learn {

struct OptimizerSettings {
  bool adam = true;
  double learning_rate = 1e-3;
  // The rate falls linearly to this share of itself over so many steps; 0: it stays.
  double final_share = 1;
  std::int64_t decay_steps = 0;
  double clip_norm = 0;  // 0: no clipping
};

}  // namespace emplace::learn
