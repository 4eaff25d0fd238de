#include "io/training_curves.h"

#include <chrono>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

#include "io/curve_table.h"
#include "io/file.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

struct Curve {
  std::string_view column;  // of the table
  std::string_view tag;     // in TensorBoard, where the part before the slash is a section
  double (*value)(const TrainingPoint&);
  bool (*known)(const TrainingPoint&) = [](const TrainingPoint&) { return true; };
};

double seconds(Nanoseconds time) {
  return static_cast<double>(time) / 1e9;
}

bool learned(const TrainingPoint& point) {
  return point.learned;
}

// What a point has beside its numbers of rounds, evaluations and seconds.
constexpr Curve kCurves[] = {
    {"simulated_seconds", "time/simulated",
     [](const TrainingPoint& point) { return point.simulated_seconds; }},
    {"best_seconds", "step_time/best",
     [](const TrainingPoint& point) { return seconds(point.best); },
     [](const TrainingPoint& point) { return point.best > 0; }},
    {"round_best_seconds", "step_time/round_best",
     [](const TrainingPoint& point) { return seconds(point.round_best); },
     [](const TrainingPoint& point) { return point.round_best > 0; }},
    {"mean_seconds", "step_time/mean",
     [](const TrainingPoint& point) { return point.mean_seconds; }},
    {"fitting_share", "policy/fitting_share",
     [](const TrainingPoint& point) { return point.fitting_share; }},
    {"entropy", "policy/entropy", [](const TrainingPoint& point) { return point.entropy; },
     learned},
    {"kl", "policy/kl", [](const TrainingPoint& point) { return point.kl; }, learned},
    {"mean_cost", "learner/mean_cost", [](const TrainingPoint& point) { return point.mean_cost; },
     learned},
    {"baseline", "learner/baseline", [](const TrainingPoint& point) { return point.baseline; },
     learned},
    {"gradient_norm", "learner/gradient_norm",
     [](const TrainingPoint& point) { return point.gradient_norm; }, learned},
    {"groups_used", "groups/used",
     [](const TrainingPoint& point) { return point.groups_used.value_or(0); },
     [](const TrainingPoint& point) { return point.groups_used.has_value(); }},
    {"groups_changed", "groups/changed",
     [](const TrainingPoint& point) { return point.groups_changed.value_or(0); },
     [](const TrainingPoint& point) { return point.groups_changed.has_value(); }},
    {"policy_seconds", "time/policy",
     [](const TrainingPoint& point) { return point.policy_seconds; }},
    {"learner_seconds", "time/learner",
     [](const TrainingPoint& point) { return point.learner_seconds; }},
    {"evaluation_seconds", "time/evaluation",
     [](const TrainingPoint& point) { return point.evaluation_seconds; }},
    {"waiting_seconds", "time/waiting",
     [](const TrainingPoint& point) { return point.waiting_seconds; }},
};

std::string training_header() {
  std::string line = "round,evaluations,seconds";
  for (const Curve& curve : kCurves) line += fmt::format(",{}", curve.column);
  return line + "\n";
}

// Nothing between the commas where a value is not known.
std::string row(const TrainingPoint& point) {
  std::string line = fmt::format("{},{},{}", point.round, point.evaluations, point.seconds);
  for (const Curve& curve : kCurves) {
    line += curve.known(point) ? fmt::format(",{}", curve.value(point)) : ",";
  }
  return line + "\n";
}

std::vector<Scalar> scalars(const TrainingPoint& point) {
  std::vector<Scalar> known;
  for (const Curve& curve : kCurves) {
    if (curve.known(point)) known.push_back({curve.tag, curve.value(point)});
  }
  return known;
}

// Throws an Error where the system cannot tell.
bool exists(const std::string& path) {
  std::error_code failure;
  const bool found = fs::exists(path, failure);
  if (failure) fail(ErrorKind::kSystem, "{}: cannot be looked at: {}", path, failure.message());
  return found;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

CurveFolder::CurveFolder(std::string folder, Begin begin, std::string header, Axis axis)
    : folder_(std::move(folder)), begin_(begin), header_(std::move(header)), axis_(axis) {
  while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
  std::error_code failure;
  if (exists(folder_) && !fs::is_directory(folder_, failure)) {
    fail(ErrorKind::kSystem, "{}: is a file; expected a folder for learning curves", folder_);
  }
  fs::create_directories(folder_, failure);
  if (failure) {
    fail(ErrorKind::kSystem, "{}: cannot be made: {}", folder_, failure.message());
  }
  require_writable(csv_path());
  lock_.emplace(csv_path());
  if (begin_ == Begin::kGoOn && !exists(csv_path())) begin_ = Begin::kAnew;
  if (begin_ == Begin::kGoOn) rows_before(read_file(csv_path()), header_, 0, csv_path());
}

void CurveFolder::add(std::int64_t round, std::int64_t evaluations, const std::string& line,
                      std::span<const Scalar> scalars) {
  const double wall_time = wall_seconds();
  if (!events_) open(round, wall_time);
  csv_->append(line);
  events_->add(wall_time, axis_ == Axis::kRounds ? round : evaluations, scalars);
}

void CurveFolder::open(std::int64_t first_round, double wall_time) {
  std::int64_t first_step = 0;
  if (begin_ == Begin::kAnew) {
    remove_event_files();
    write_file(csv_path(), header_);
  } else {
    const std::string table = read_file(csv_path());
    const KeptRows kept = rows_before(table, header_, first_round, csv_path());
    first_step = (axis_ == Axis::kRounds ? kept.round : kept.evaluations) + 1;
    write_file(csv_path(), kept.table);
  }
  csv_.emplace(csv_path(), AppendFile::Open::kExisting);
  events_.emplace(folder_, wall_time);
  if (begin_ == Begin::kGoOn) events_->restart_at(wall_time, first_step);
}

// Of the run that was here before; others' are left alone.
void CurveFolder::remove_event_files() const {
  std::error_code failure;
  std::vector<fs::path> old;
  fs::directory_iterator entry(folder_, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("events.out.tfevents.") && name.ends_with(kEventFileEnding)) {
      old.push_back(entry->path());
    }
  }
  if (failure) fail(ErrorKind::kSystem, "{}: cannot be read: {}", folder_, failure.message());
  for (const fs::path& path : old) {
    fs::remove(path, failure);
    if (failure) {
      fail(ErrorKind::kSystem, "{}: cannot be removed: {}", path.string(), failure.message());
    }
  }
}

TrainingCurves::TrainingCurves(std::string folder, CurveFolder::Begin begin)
    : files_(std::move(folder), begin, training_header(), CurveFolder::Axis::kEvaluations) {}

void TrainingCurves::add(const TrainingPoint& point) {
  files_.add(point.round, point.evaluations, row(point), scalars(point));
}

PolicyCurves::PolicyCurves(std::string folder, CurveFolder::Begin begin)
    : files_(std::move(folder), begin,
             "step,evaluations,seconds,phase,likelihood,relative_time,fitting_share\n",
             CurveFolder::Axis::kRounds) {}

void PolicyCurves::add(const PolicyPoint& point) {
  std::string line =
      fmt::format("{},{},{},{}", point.step, point.evaluations, point.seconds, point.phase);
  std::vector<Scalar> known{{"time/evaluations", static_cast<double>(point.evaluations)}};
  const auto add_value = [&](std::string_view tag, const std::optional<double>& value) {
    line += value ? fmt::format(",{}", *value) : ",";
    if (value) known.push_back({tag, *value});
  };
  add_value("imitation/likelihood", point.likelihood);
  add_value("practice/relative_time", point.relative_time);
  add_value("practice/fitting_share", point.fitting_share);
  files_.add(point.step, point.evaluations, line + "\n", known);
}

}  // namespace emplace
