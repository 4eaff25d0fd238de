// What the build makes of the files in policies/ (cmake/policies.cmake).
#pragma once

#include <span>
#include <string_view>

namespace emplace::learn {

struct ShippedPolicy {
  std::string_view kind;
  std::string_view bytes;
};

std::span<const ShippedPolicy> shipped_policies();

}  // namespace emplace::learn
