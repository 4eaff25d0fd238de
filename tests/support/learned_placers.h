// The placers that learn, which a build without libtorch does not have.
#pragma once

#include <vector>

#include "placers/all.h"

namespace emplace {

inline std::vector<const MethodInfo*> learned_placers() {
  std::vector<const MethodInfo*> learned;
  for (const MethodInfo* info : all_placers().list()) {
    if (info->learns) learned.push_back(info);
  }
  return learned;
}

}  // namespace emplace
