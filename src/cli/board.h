// What the progress line tells of runs, looked at by its thread.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "placer/run.h"

#include "cli/stages.h"
#include "search/learning.h"

namespace emplace::cli {

class Board {
 public:
  Board(std::size_t runs, const Stages& stages);

  void begin(std::size_t number, const PlacerRun& run, const Evaluator& evaluator,
             const Budget& budget);
  // Before the evaluator goes.
  void end();
  void note(const Evaluation& value);
  // A bound that holds for all that is wanted.
  void raise(Nanoseconds bound);
  // A round of the run that has begun.
  void learned(const TrainingPoint& point);

  std::string line();

 private:
  void note(const Incumbent& incumbent);
  std::string learning() const;
  std::string pace() const;

  std::size_t runs_;
  bool only_stage_;
  std::mutex mutex_;
  std::string title_;
  const Evaluator* evaluator_ = nullptr;
  Budget budget_;
  std::optional<Evaluation> best_;
  Nanoseconds bound_ = 0;
  std::optional<TrainingPoint> last_point_;
  // What the pace is counted from: the first round's end, since a resumed run has evaluations that
  // it did not make, and a network takes its time to be made.
  std::int64_t first_evaluations_ = 0;
  double first_seconds_ = 0;
};

}  // namespace emplace::cli
