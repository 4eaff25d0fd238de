// What a search must not lose, as a file: the incumbent, the bound and, between rounds, every
// island's best (run/islands.h).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <emplace/place.h>

#include "placer/run.h"

#include "run/islands.h"
#include "run/learning_files.h"
#include "run/subset_problems.h"

namespace emplace {

class SearchCheckpoint {
 public:
  struct Islands {
    std::size_t count = 0;  // under an evaluation budget; else 0
    bool asked_for = true;  // else a file that is resumed says how many
    // Of the budget. A file that was written under another one is gone on from with what is left.
    std::optional<std::int64_t> evaluations = std::nullopt;
  };
  // Throws an Error when the file cannot be used, or is of another search. The others outlive it.
  SearchCheckpoint(const LearningSettings& settings, const SubsetProblems& problems,
                   const PlacerRun& run, const Islands& islands);

  std::size_t islands() const { return islands_.count; }

  struct Kept {
    std::optional<Solution> best = std::nullopt;  // in the numbers of the subset
    LowerBound bound = {};
    IslandState islands = {};
  };
  // By problem.
  const Kept& kept(std::size_t problem) const { return kept_[problem]; }
  void note_round(std::size_t problem, const IslandState& state);
  // What could not be written at last; nothing where all was.
  const std::optional<std::string>& failure() const { return file_.failure(); }

  // While it lives, what the context's incumbent holds is saved every now and then; and at the end.
  class Watch {
   public:
    Watch(SearchCheckpoint& owner, std::size_t problem, const PlaceContext& context);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    void work();

    SearchCheckpoint& owner_;
    std::size_t problem_;
    const PlaceContext& context_;
    std::mutex mutex_;
    std::condition_variable ending_changed_;
    bool ending_ = false;
    std::thread thread_;
  };

 private:
  void read(const std::string& bytes);
  void check(const Kept& kept, const SubsetProblem& problem) const;
  void begin_rounds(Kept& kept, const SubsetProblem& problem) const;
  std::string header() const;
  void take_incumbent(std::size_t problem, const PlaceContext& context);
  void save();

  const SubsetProblems& problems_;
  const PlacerRun& run_;
  Islands islands_;
  CheckpointFile file_;
  std::mutex mutex_;
  std::vector<Kept> kept_;
};

}  // namespace emplace
