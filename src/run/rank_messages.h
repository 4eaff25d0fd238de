// What ranks tell each other about placements of a problem that all of them know, and what search
// checkpoints keep of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placer/placement_messages.h"
#include "placer/run.h"

#include "dist/wire.h"
#include "run/subset_problems.h"

namespace emplace {

// What a rank is told to do: the first number of a task.
enum class RankTask : std::uint8_t { kIsland, kRun, kSamples, kLearning };

// Whoever computes the same has read the same problems.
std::uint64_t fingerprint(const SubsetProblems& problems);
// And is to do the same with them, from the same starts; `measures`: by executing steps.
std::uint64_t fingerprint(const SubsetProblems& problems, const std::vector<PlacerRun>& runs,
                          bool measures);

void put(dist::Writer& writer, const Solution& solution, const Problem& problem);
void put(dist::Writer& writer, const LowerBound& bound);
void put(dist::Writer& writer, const RunResult& result, const Problem& problem);

// Throw an Error when it cannot be one of this problem.
Solution take_solution(dist::Reader& reader, const Problem& problem);
LowerBound take_bound(dist::Reader& reader);
// `run`: of which it is the result.
RunResult take_result(dist::Reader& reader, const Problem& problem, const PlacerRun& run);

// Throws an Error unless the solution has the value that it claims.
void check_value(const Solution& solution, Evaluator& evaluator);
// The same unless an answer of this value may exist under this bound.
void check_bound(const LowerBound& bound, const Evaluation& value);

}  // namespace emplace
