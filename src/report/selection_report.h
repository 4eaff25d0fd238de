// A selection of strategies, told to people and to programs.
#pragma once

#include <cstdint>
#include <string>

#include "selection/solve.h"

namespace emplace {

std::string to_text(const SelectionProblem& problem, const SelectionResult& result);
std::string to_json(const SelectionProblem& problem, const SelectionResult& result, double seconds,
                    std::uint64_t seed);
// How far it has come, in one line.
std::string to_line(const SelectionProgress& progress);

}  // namespace emplace
