// The policies that come with the library (policies/ in the source tree), one of each kind.
#pragma once

#include <string>

namespace emplace::learn {

// A policy file's bytes. Throws an Error where there is none of this kind.
std::string shipped_policy(const std::string& kind);

}  // namespace emplace::learn
