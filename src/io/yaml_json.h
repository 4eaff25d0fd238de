// YAML of ours as JSON: the same names and values.
#pragma once

#include <string>

namespace emplace {

// Words that are numbers or flags become such, unless they are quoted; comments are lost.
std::string yaml_to_json(const std::string& yaml);

}  // namespace emplace
