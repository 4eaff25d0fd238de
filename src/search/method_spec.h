// How a method (a placer, a way to partition) is named with its options: "heft(insertion=false)".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace emplace {

struct MethodSpec {
  std::string key;
  OptionValues options = {};

  // Throws an Error that shows where the text stops making sense.
  static MethodSpec parse(std::string_view text);
  std::string to_string() const;

  friend bool operator==(const MethodSpec& a, const MethodSpec& b) = default;
};

// "heft,metis(imbalance=1.1,method=kway)" at its top-level commas.
std::vector<std::string> split_specs(std::string_view text);

}  // namespace emplace
