// One search as several, on this process or on many ranks, that share what they find.
//
// Under a budget of time there is an island on every rank, from the beginning to the end; what each
// finds and proves reaches the others while they run. Under one of evaluations the number of
// islands is given, they run in rounds of fixed length, and between rounds each hears of the
// others: any rank can do any island's round, so the result depends on the seed and the number of
// islands alone. What a round finds is known before it is over, but nobody goes on from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placer/run.h"

#include "dist/crew.h"
#include "dist/member.h"

namespace emplace {

inline constexpr std::size_t kMostIslands = 100'000;
// Throws an Error unless there is an evaluation for each round of each island.
void check_islands(std::size_t islands, std::int64_t evaluations);

// What islands work on. Everybody has it; tasks say the rest.
struct IslandQuestion {
  // In the numbers that tasks name them by.
  std::size_t run_index = 0;
  std::size_t problem_index = 0;
  const PlacerRun* run = nullptr;
  PlaceContext* context = nullptr;  // whose incumbent is everybody's
  Budget budget = {};
};

// Where they have come to between two rounds, for checkpoints.
struct IslandState {
  int rounds_done = 0;
  std::int64_t evaluations = 0;
  // Of these, those of searches under other budgets: the rounds share what is left of this one.
  std::int64_t evaluations_before = 0;
  std::vector<Solution> elites = {};  // by island
};

struct IslandOptions {
  dist::Crew* crew = nullptr;  // nullptr: this process alone
  std::size_t islands = 0;     // under evaluations; 0: as many as ranks
  IslandState resumed = {};
  // After each round.
  std::function<void(const IslandState&)> on_round = {};
};

// Before anybody looks at the context from another thread.
void order_by_scheduler(PlaceContext& context, const PlacerRun& run);

// The best of all, with everybody's evaluations and bounds.
RunResult run_islands(const IslandQuestion& question, const IslandOptions& options);

// On the other ranks: which context and run a task is about, made anew for each.
struct IslandPlace {
  const PlacerRun* run = nullptr;
  std::unique_ptr<PlaceContext> context = {};
};
using FindIsland = std::function<IslandPlace(std::size_t run_index, std::size_t problem_index)>;
// Does what the rest of the task says, behind its RankTask, with `threads`.
std::string do_island_task(dist::Reader& task, dist::Line& line, const FindIsland& find,
                           int threads);

}  // namespace emplace
