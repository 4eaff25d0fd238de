// How large a general policy is: saved with its parameters, named without libtorch.
#pragma once

#include <cstdint>

namespace emplace::learn {

struct GeneralNetwork {
  std::int64_t width = 32;
  std::int64_t layers = 2;  // of what comes after the graph's encoder, where that has layers
  bool superposition = true;

  friend bool operator==(const GeneralNetwork& a, const GeneralNetwork& b) = default;
};

}  // namespace emplace::learn
