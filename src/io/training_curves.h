// Learning curves in a folder: curves.csv, and an event file for TensorBoard. Both can be read
// while they grow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <emplace/train.h>

#include "io/append_file.h"
#include "io/event_file.h"
#include "io/file_lock.h"
#include "search/learning.h"

namespace emplace {

// The two files, whatever their columns.
class CurveFolder {
 public:
  enum class Begin {
    kAnew,  // the folder's curves are replaced
    kGoOn,  // they go on, without the rounds that the first point repeats
  };
  // What TensorBoard draws curves over.
  enum class Axis { kRounds, kEvaluations };

  // `header` is the table's first line, whose first two columns are the round and the evaluations.
  // Makes the folder, which is this run's from now on; its files are left alone until the first
  // point. Throws an Error when it cannot be made or written to, or is another run's, or when the
  // curves to go on with are none.
  CurveFolder(std::string folder, Begin begin, std::string header, Axis axis);

  // `line` is the whole row. Throws an Error where it cannot write.
  void add(std::int64_t round, std::int64_t evaluations, const std::string& line,
           std::span<const Scalar> scalars);

  std::string csv_path() const { return folder_ + "/curves.csv"; }

 private:
  void open(std::int64_t first_round, double wall_time);
  void remove_event_files() const;

  std::string folder_;
  Begin begin_;
  std::string header_;
  Axis axis_;
  std::optional<FileLock> lock_;
  std::optional<AppendFile> csv_;
  std::optional<EventFile> events_;
};

// Of one run of a placer that learns.
class TrainingCurves {
 public:
  using Begin = CurveFolder::Begin;

  TrainingCurves(std::string folder, Begin begin);
  void add(const TrainingPoint& point);
  std::string csv_path() const { return files_.csv_path(); }

 private:
  CurveFolder files_;
};

// Of training one policy on many graphs.
class PolicyCurves {
 public:
  PolicyCurves(std::string folder, CurveFolder::Begin begin);
  void add(const PolicyPoint& point);

 private:
  CurveFolder files_;
};

}  // namespace emplace
