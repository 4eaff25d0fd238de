// Ops that draw random numbers do so under their names. A second computation of one, or a piece of
// it, must draw what the original does: an attribute says under which name that is.
#pragma once

#include <string>
#include <string_view>

#include "graph/attributes.h"

namespace emplace {

inline constexpr std::string_view kDrawnAs = "drawn_as";

// For a copy of the op of this type and name.
inline void draw_as_original(Attributes& attributes, std::string_view type, std::string_view name) {
  const bool draws = type == "Dropout" || type == "BiasDropout" ||
                     (type == "FlashAttention" && attributes.real("dropout", 0) > 0);
  if (draws && attributes.find(kDrawnAs) == nullptr) {
    attributes.set(std::string(kDrawnAs), std::string(name));
  }
}

}  // namespace emplace
