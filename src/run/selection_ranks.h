// A strategy-selection problem on several ranks, each of which searches with random numbers of its
// own until the time is over or one of them has proven its answer.
#pragma once

#include "dist/crew.h"
#include "dist/member.h"
#include "selection/solve.h"

namespace emplace {

// Whoever computes the same has read the same problem, and is asked for the same.
std::uint64_t fingerprint(const SelectionProblem& problem, std::uint64_t seed);

// The best of all, with the highest bound.
SelectionResult select_on_ranks(const SelectionProblem& problem, const Budget& budget,
                                std::uint64_t seed, const SelectionOptions& options,
                                dist::Crew& crew);

void serve_selection(const SelectionProblem& problem, const Budget& budget, std::uint64_t seed,
                     dist::Member& member);

}  // namespace emplace
