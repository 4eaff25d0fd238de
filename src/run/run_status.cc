#include "run/run_status.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/units.h"

#include "graph/tensor_type.h"

namespace emplace {
namespace {

std::string label(const PlacerRun& run) {
  std::string text = run.placer.to_string();
  const bool fixed = run.scheduler != kOwnSchedule && run.scheduler != kBestSchedule;
  if (fixed) text += " + " + run.scheduler;
  return text;
}

std::string describe_run(const Evaluation& value) {
  if (value.fits()) return "best " + format_time(value.step);
  return fmt::format("nearest {}, {} short of memory", format_time(value.step),
                     format_bytes(value.overflow));
}

}  // namespace

RunStatus::RunStatus(std::size_t runs, bool only_problem, Nanoseconds bound, bool each_for_itself)
    : runs_(runs), only_problem_(only_problem), each_for_itself_(each_for_itself), bound_(bound) {}

void RunStatus::begin(std::size_t number, const PlacerRun& run, const PlaceContext& context,
                      const Budget& budget) {
  const std::lock_guard lock(mutex_);
  if (each_for_itself_ && number != number_) best_.reset();
  number_ = number;
  title_ = runs_ > 1 ? fmt::format("[{}/{}] {}", number, runs_, label(run)) : label(run);
  context_ = &context;
  budget_ = budget.or_default();
  last_point_.reset();
  first_evaluations_ = 0;
  first_seconds_ = 0;
  loads_.clear();
  loads_version_ = 0;
}

void RunStatus::end() {
  const std::lock_guard lock(mutex_);
  note(context_->incumbent());
  context_ = nullptr;
  last_point_.reset();
}

void RunStatus::note(const Evaluation& value) {
  const std::lock_guard lock(mutex_);
  note_here(value);
}

void RunStatus::note_here(const Evaluation& value) {
  best_ = best_ ? std::min(*best_, value) : value;
  best_of_all_ = best_of_all_ ? std::min(*best_of_all_, value) : value;
}

void RunStatus::raise(Nanoseconds bound) {
  const std::lock_guard lock(mutex_);
  bound_ = std::max(bound_, bound);
}

void RunStatus::learned(const TrainingPoint& point) {
  const std::lock_guard lock(mutex_);
  if (!last_point_) {
    first_evaluations_ = point.evaluations;
    first_seconds_ = budget_.elapsed_seconds();
  }
  last_point_ = point;
}

RunView RunStatus::view() {
  const std::lock_guard lock(mutex_);
  RunView view;
  std::string text = title_;
  Nanoseconds bound = bound_;
  if (context_ != nullptr) {
    note(context_->incumbent());
    find_loads();
    view.loads = loads_;
    if (only_problem_) bound = std::max(bound, context_->incumbent().bound().step);
  }
  if (best_) text += "   " + describe_run(*best_);
  if (last_point_) text += learning();
  if (best_ && best_->fits() && bound > 0) {
    const double above = static_cast<double>(best_->step) / static_cast<double>(bound) - 1;
    text += fmt::format("   bound {}   gap {:.1f} %", format_time(bound), 100 * above);
    view.gap = above;
  }
  if (best_of_all_ && best_of_all_->fits() && (!best_ || *best_of_all_ < *best_)) {
    text += "   best of all " + format_time(best_of_all_->step);
  }
  if (context_ != nullptr && context_->evaluations() > 0) text += pace();
  view.line = std::move(text);
  return view;
}

// Counted again only when there is another best.
void RunStatus::find_loads() {
  const std::uint64_t version = context_->incumbent().version();
  if (version == loads_version_) return;
  const auto best = context_->incumbent().best();
  if (!best || best->value.step <= 0) return;
  loads_version_ = version;
  loads_.clear();
  const Problem& problem = context_->problem();
  std::vector<Nanoseconds> busy(problem.num_devices(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const DeviceId device = best->placement[op];
    busy[device] = saturating_add(busy[device], problem.duration(op, device));
  }
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    loads_.push_back({problem.cluster().device(device).name,
                      static_cast<double>(busy[device]) / static_cast<double>(best->value.step)});
  }
}

void RunStatus::note(const Incumbent& incumbent) {
  const auto value = incumbent.value();
  if (value) note_here(*value);
}

std::string RunStatus::learning() const {
  const auto mean = static_cast<Nanoseconds>(last_point_->mean_seconds * 1e9);
  std::string text = "   mean " + format_time(mean);
  if (last_point_->learned) text += fmt::format("   entropy {:.3f}", last_point_->entropy);
  return text;
}

std::string RunStatus::pace() const {
  const double elapsed = budget_.elapsed_seconds();
  const auto done = static_cast<double>(context_->evaluations() - first_evaluations_);
  const double rate = done / std::max(elapsed - first_seconds_, 1e-3);
  std::string text = fmt::format("   {}/s", format_count(static_cast<std::int64_t>(rate)));
  if (budget_.seconds) {
    text += fmt::format("   {:.0f} s left", std::max(0.0, *budget_.seconds - elapsed));
  }
  if (budget_.evaluations) {
    text += fmt::format("   {} of {} evaluations", format_count(context_->evaluations()),
                        format_count(*budget_.evaluations));
  }
  return text;
}

}  // namespace emplace
