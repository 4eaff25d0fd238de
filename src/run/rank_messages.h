// What ranks tell each other about placements of a problem that all of them know, and what search
// checkpoints keep of it.
#pragma once

#include <cstdint>
#include <string>

#include "placer/placement_messages.h"
#include "placer/run.h"

#include "dist/wire.h"
#include "run/subset_problems.h"

namespace emplace {

// What a rank is told to do: the first number of a task.
enum class RankTask : std::uint8_t { kIsland, kRun, kSamples, kLearning };

// FNV-1a, by words.
class Hash {
 public:
  void add(std::uint64_t word) { hash_ = (hash_ ^ word) * 0x100000001b3ULL; }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

void add_problem(Hash& hash, const Problem& problem);

// Whoever computes the same has read the same problems.
std::uint64_t fingerprint(const SubsetProblems& problems);

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

}  // namespace emplace
