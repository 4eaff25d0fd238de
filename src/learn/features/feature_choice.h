// How much a policy is told of the units that it decides about (learn/features/features.h).
#pragma once

namespace emplace::learn {

enum class Features {
  kTypesAndShapes,  // as published
  kAll,
};

}  // namespace emplace::learn
