// Problems of the ASPLOS 2025 contest IOPDDL in, and the selections that answer them out.
#pragma once

#include <string>

namespace emplace {

class SelectionProblem;  // selection/selection_problem.h
struct SelectionResult;  // selection/solve.h

// A file, also gzipped. Errors name it.
SelectionProblem read_iopddl(const std::string& path);
// From a file's (uncompressed) bytes.
SelectionProblem read_iopddl_json(const std::string& text);

// emplace.strategies/1.
std::string write_strategies_json(const SelectionResult& result);

}  // namespace emplace
