// What an executed placement showed, for people and for programs.
#pragma once

#include <string>

#include "run/execution.h"

namespace emplace {

std::string to_text(const Execution& execution);
// One object.
std::string to_json(const Execution& execution);

}  // namespace emplace
