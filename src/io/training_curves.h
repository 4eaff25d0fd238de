// Learning curves in a folder: curves.csv, and an event file for TensorBoard. Both can be read
// while they grow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/append_file.h"
#include "io/event_file.h"
#include "search/learning.h"

namespace emplace {

class TrainingCurves {
 public:
  enum class Begin {
    kAnew,  // the folder's curves are replaced
    kGoOn,  // they go on, without the rounds that the first point repeats
  };

  // Writes nothing before the first point, which makes the folder. Throws an Error when it is a
  // file, or when the curves to go on with are none.
  TrainingCurves(std::string folder, Begin begin);

  // Throws an Error where it cannot write.
  void add(const TrainingPoint& point);

  std::string csv_path() const { return folder_ + "/curves.csv"; }

 private:
  void open(const TrainingPoint& first, double wall_time);
  void remove_event_files() const;

  std::string folder_;
  Begin begin_;
  std::optional<AppendFile> csv_;
  std::optional<EventFile> events_;
};

}  // namespace emplace
