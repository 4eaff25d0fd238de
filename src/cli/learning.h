// What placers that learn are told beside the budget: where to compute, where curves and
// checkpoints go.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placer/run.h"

#include "cli/command.h"
#include "cli/stages.h"
#include "io/training_curves.h"
#include "search/learning.h"

namespace emplace::cli {

// --device, --curves; --checkpoint, --checkpoint-every, --resume.
struct LearningArguments {
  std::string device;
  std::string curves;
  std::string checkpoint;
  std::string checkpoint_every;
  bool resume = false;

  // Checkpoints are for commands of which one run learns.
  void add_to(CLI::App& command, bool several_runs);
  // Throws an Error when something is given that these runs have no use for.
  void check(const std::vector<PlacerRun>& runs, const Stages& stages) const;
};

bool learns(const PlacerRun& run);

// The files of one run that learns. What cannot be written while it runs does not end it.
class LearningFiles {
 public:
  // Throws an Error when a file or folder cannot be used, or there is no checkpoint to resume.
  explicit LearningFiles(LearningArguments arguments);
  LearningFiles(const LearningFiles&) = delete;
  LearningFiles& operator=(const LearningFiles&) = delete;

  // Must outlive the run.
  void attach(Training& training, std::function<void(const TrainingPoint&)> listener);
  // After the run: what could not be written at last; nothing where all was.
  const std::optional<std::string>& failure() const;

 private:
  void save(std::string_view bytes);
  void add(const TrainingPoint& point);

  LearningArguments arguments_;
  double save_seconds_ = 0;
  std::string resumed_;
  std::optional<TrainingCurves> curves_;
  std::optional<std::string> curves_failure_;
  std::optional<std::string> checkpoint_failure_;
};

// By run; none for those that learn nothing of their own. To be called before the first run, since
// what cannot be used is an Error then. Where several learn, or always if so wished, the curves of
// each have a folder of their own in the one that was given.
std::vector<std::unique_ptr<LearningFiles>> open_learning_files(const LearningArguments& arguments,
                                                                const std::vector<PlacerRun>& runs,
                                                                bool always_apart);

}  // namespace emplace::cli
