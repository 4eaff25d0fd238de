// A proven limit: no answer that fits is better than this.
#pragma once

#include <string>

#include "base/units.h"

namespace emplace {

struct LowerBound {
  Nanoseconds step = 0;  // or period
  std::string reason;    // in a few words
};

}  // namespace emplace
