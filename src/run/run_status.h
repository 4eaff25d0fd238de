// How far a portfolio's runs have come, for whoever shows progress: written by the runs, read by
// another thread.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "placer/run.h"

#include "search/learning.h"

namespace emplace {

// How far it is, for those who draw it.
struct RunView {
  std::string line;  // in words
  // How far the best of the run is above the bound, as a share; nothing where either is unknown.
  std::optional<double> gap = std::nullopt;
  struct Load {
    std::string device;
    double share = 0;  // of the best's step, in which it computes
  };
  std::vector<Load> loads = {};  // under the best that there is now, where a run is going on
};

class RunStatus {
 public:
  // `each_for_itself`: whether what counts is each run's best, not the best of all.
  RunStatus(std::size_t runs, bool only_problem, Nanoseconds bound, bool each_for_itself = false);

  void begin(std::size_t number, const PlacerRun& run, const PlaceContext& context,
             const Budget& budget);
  // Before the context goes.
  void end();
  void note(const Evaluation& value);
  // A bound that holds for all that is wanted.
  void raise(Nanoseconds bound);
  // A round of the run that has begun.
  void learned(const TrainingPoint& point);

  // In one line.
  std::string line() { return view().line; }
  RunView view();

 private:
  void note(const Incumbent& incumbent);
  void note_here(const Evaluation& value);
  std::string learning() const;
  std::string pace() const;
  void find_loads();

  std::size_t runs_;
  bool only_problem_;
  bool each_for_itself_;
  std::size_t number_ = 0;
  std::mutex mutex_;
  std::string title_;
  const PlaceContext* context_ = nullptr;
  Budget budget_;
  std::optional<Evaluation> best_;  // of the run, or of all
  std::optional<Evaluation> best_of_all_;
  Nanoseconds bound_ = 0;
  std::optional<TrainingPoint> last_point_;
  // What the pace is counted from: the first round's end, since a resumed run has evaluations that
  // it did not make, and a network takes its time to be made.
  std::int64_t first_evaluations_ = 0;
  double first_seconds_ = 0;
  // Of the best of which it was counted last.
  std::vector<RunView::Load> loads_;
  std::uint64_t loads_version_ = 0;
};

}  // namespace emplace
