// What a spec comes to, whatever was written.
#pragma once

#include <vector>

#include "search/method_spec.h"

namespace emplace {

// Of a method that has these options: the values that differ from the defaults, presets resolved,
// in the order in which the options are declared. Specs that mean the same give the same.
MethodSpec in_effect(const MethodSpec& spec, const std::vector<OptionInfo>& options);

}  // namespace emplace
