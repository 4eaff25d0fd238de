// Where placers that learn compute, and where their curves and checkpoints go.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emplace/place.h>

#include "placer/run.h"

#include "io/file_lock.h"
#include "io/training_curves.h"
#include "search/learning.h"

namespace emplace {

// Throws an Error when something is asked for that these runs have no use for. `problems` is how
// many problems each of them runs on.
void check_learning(const LearningSettings& settings, const std::vector<PlacerRun>& runs,
                    std::size_t problems);

bool learns(const PlacerRun& run);
// Whether it has several controllers, which share what they learn, or one with workers.
bool has_controllers(const PlacerRun& run);
// Whether the checkpoint is that of the one run, a search (run/search_checkpoint.h).
bool keeps_search(const LearningSettings& settings, const std::vector<PlacerRun>& runs);

// A checkpoint: one to go on from, or a new one. What cannot be written while something learns does
// not end it.
class CheckpointFile {
 public:
  // Throws an Error when the file cannot be used, another run is using it, or there is none to
  // resume.
  // `owner` is who learns, with the options that are not at their defaults: what is resumed must be
  // of the same. Nobody: whoever reads the bytes knows by them.
  explicit CheckpointFile(const LearningSettings& settings, std::string owner = {});

  bool wanted() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  double seconds() const { return seconds_; }  // from one to the next
  const std::string& resumed() const { return resumed_; }
  void save(std::string_view bytes);
  // What could not be written at last; nothing where all was.
  const std::optional<std::string>& failure() const { return failure_; }

 private:
  std::string path_;
  std::string owner_;
  std::optional<FileLock> lock_;
  double seconds_ = 0;
  std::string resumed_;
  std::optional<std::string> failure_;
};

// The files of one run that learns. What cannot be written while it runs does not end it.
class LearningFiles {
 public:
  // Throws an Error when a file or folder cannot be used, or there is no checkpoint to resume.
  explicit LearningFiles(LearningSettings settings, std::string owner = {});
  LearningFiles(const LearningFiles&) = delete;
  LearningFiles& operator=(const LearningFiles&) = delete;

  // Must outlive the run.
  void attach(Learning& learning, std::function<void(const TrainingPoint&)> listener);
  // After the run: what could not be written at last; nothing where all was.
  const std::optional<std::string>& failure() const;

 private:
  void add(const TrainingPoint& point);

  LearningSettings settings_;
  CheckpointFile checkpoint_;
  std::optional<TrainingCurves> curves_;
  std::optional<std::string> curves_failure_;
};

// By run; none for those that learn nothing of their own. To be called before the first run, since
// what cannot be used is an Error then. Where several learn, or always if so wished, the curves of
// each have a folder of their own in the one that was given.
std::vector<std::unique_ptr<LearningFiles>> open_learning_files(const LearningSettings& settings,
                                                                const std::vector<PlacerRun>& runs,
                                                                bool always_apart);

}  // namespace emplace
