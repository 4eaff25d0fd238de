#include "cli/board.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/units.h"

namespace emplace::cli {
namespace {

std::string label(const PlacerRun& run) {
  std::string text = run.placer.to_string();
  if (run.scheduler != kOwnSchedule) text += " + " + run.scheduler;
  return text;
}

std::string describe(const Evaluation& value) {
  if (value.fits()) return "best " + format_time(value.step);
  return fmt::format("nearest {}, {} short of memory", format_time(value.step),
                     format_bytes(value.overflow));
}

}  // namespace

Board::Board(std::size_t runs, const Stages& stages)
    : runs_(runs), only_stage_(stages.list().size() == 1) {
  bound_ = stages.list().front().bound.step;
  for (const Stage& stage : stages.list()) bound_ = std::min(bound_, stage.bound.step);
}

void Board::begin(std::size_t number, const PlacerRun& run, const Evaluator& evaluator,
                  const Budget& budget) {
  const std::lock_guard lock(mutex_);
  title_ = runs_ > 1 ? fmt::format("[{}/{}] {}", number, runs_, label(run)) : label(run);
  evaluator_ = &evaluator;
  budget_ = budget.or_default();
  last_point_.reset();
  first_evaluations_ = 0;
  first_seconds_ = 0;
}

void Board::end() {
  const std::lock_guard lock(mutex_);
  note(evaluator_->incumbent());
  evaluator_ = nullptr;
  last_point_.reset();
}

void Board::note(const Evaluation& value) {
  const std::lock_guard lock(mutex_);
  best_ = best_ ? std::min(*best_, value) : value;
}

void Board::raise(Nanoseconds bound) {
  const std::lock_guard lock(mutex_);
  bound_ = std::max(bound_, bound);
}

void Board::learned(const TrainingPoint& point) {
  const std::lock_guard lock(mutex_);
  if (!last_point_) {
    first_evaluations_ = point.evaluations;
    first_seconds_ = budget_.elapsed_seconds();
  }
  last_point_ = point;
}

std::string Board::line() {
  const std::lock_guard lock(mutex_);
  std::string text = title_;
  Nanoseconds bound = bound_;
  if (evaluator_ != nullptr) {
    note(evaluator_->incumbent());
    if (only_stage_) bound = std::max(bound, evaluator_->incumbent().bound().step);
  }
  if (best_) text += "   " + describe(*best_);
  if (last_point_) text += learning();
  if (best_ && best_->fits() && bound > 0) {
    const double above = static_cast<double>(best_->step) / static_cast<double>(bound) - 1;
    text += fmt::format("   bound {}   gap {:.1f} %", format_time(bound), 100 * above);
  }
  if (evaluator_ != nullptr && evaluator_->evaluations() > 0) text += pace();
  return text;
}

void Board::note(const Incumbent& incumbent) {
  const auto value = incumbent.value();
  if (value) best_ = best_ ? std::min(*best_, *value) : *value;
}

std::string Board::learning() const {
  const auto mean = static_cast<Nanoseconds>(last_point_->mean_seconds * 1e9);
  std::string text = "   mean " + format_time(mean);
  if (last_point_->learned) text += fmt::format("   entropy {:.3f}", last_point_->entropy);
  return text;
}

std::string Board::pace() const {
  const double elapsed = budget_.elapsed_seconds();
  const auto done = static_cast<double>(evaluator_->evaluations() - first_evaluations_);
  const double rate = done / std::max(elapsed - first_seconds_, 1e-3);
  std::string text = fmt::format("   {}/s", format_count(static_cast<std::int64_t>(rate)));
  if (budget_.seconds) {
    text += fmt::format("   {:.0f} s left", std::max(0.0, *budget_.seconds - elapsed));
  }
  if (budget_.evaluations) {
    text += fmt::format("   {} of {} evaluations", format_count(evaluator_->evaluations()),
                        format_count(*budget_.evaluations));
  }
  return text;
}

}  // namespace emplace::cli
