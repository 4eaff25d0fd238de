// General policies as they are named and sized, without libtorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace emplace::learn {

// The kinds of general policies.
inline const std::vector<std::string>& general_kinds() {
  static const std::vector<std::string> kinds{"gdp", "mars", "placeto"};
  return kinds;
}

// How large a general policy is: saved with its parameters.
struct GeneralNetwork {
  std::int64_t width = 32;
  std::int64_t layers = 2;  // of what comes after the graph's encoder, where that has layers
  bool superposition = true;

  friend bool operator==(const GeneralNetwork& a, const GeneralNetwork& b) = default;
};

}  // namespace emplace::learn
