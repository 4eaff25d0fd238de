// Commands as a shell takes them: what was typed, and what a page offers to type next.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace emplace::cli {

// The program by its name, then the words, in quotes where a shell would read more into them.
std::string as_typed(std::span<const std::string> words);

// emplace partition of the same model on the same hardware, for about as long. What partitions have
// no place for is left out: pins, fused ops, modules kept whole. `request`: as it was answered,
// with the batch that was chosen.
std::string divide_command(const ProblemArguments& problem, const ProblemRequest& request,
                           const BudgetArguments& budget, std::uint64_t seed);

}  // namespace emplace::cli
