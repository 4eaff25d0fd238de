// What keeping modules whole costs, told to people and to programs.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "run/whole_modules.h"

namespace emplace {

// In one sentence.
std::string describe(const WholeModules& modules);
// The object `whole_modules` of docs/formats.md. `time`: "step_ns" or "period_ns".
nlohmann::ordered_json to_json(const WholeModules& modules, const char* time);

}  // namespace emplace
