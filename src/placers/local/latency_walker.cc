#include "placers/local/latency_walker.h"

#include <chrono>

#include "base/check.h"

namespace emplace {
namespace {

// Tries between looks at which way is cheaper, and between trials of recording when it was not.
constexpr std::int64_t kChoiceInterval = 48;
constexpr std::int64_t kTrialInterval = 1500;
// Where moves change nearly everything, nothing can be reused.
constexpr std::size_t kMostPending = 256;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

LatencyWalker::LatencyWalker(Evaluator& evaluator)
    : evaluator_(evaluator),
      problem_(evaluator.problem()),
      simulator_(evaluator.simulator()),
      workspace_(simulator_->make_workspace()) {
  EMPLACE_CHECK(!evaluator.order_follows_placement());
}

Evaluation LatencyWalker::start(const Placement& placement, const Schedule& schedule) {
  order_ = ReadyOrder(problem_, evaluator_.schedule_of(placement, schedule));
  placement_ = placement;
  stop_recording();
  evaluator_.count(1);
  value_ = simulator_->evaluate(placement_, order_, *workspace_);
  next_choice_ = tries_ + kChoiceInterval / 2;
  return value_;
}

template <class Full, class Incremental>
Evaluation LatencyWalker::evaluate(std::span<const Move> moves, Full full,
                                   Incremental incremental) {
  evaluator_.count(1);
  if (tries_++ >= next_choice_) choose();
  const auto start = std::chrono::steady_clock::now();
  acceptance_.value *= 0.99;
  if (!recorded_) {
    const Evaluation value = run_full(moves, full);
    full_seconds_.add(seconds_since(start));
    return value;
  }
  if (pending_.empty()) {
    const Evaluation value = incremental(moves);
    fresh_seconds_.add(seconds_since(start));
    return value;
  }
  joined_ = pending_;
  joined_.insert(joined_.end(), moves.begin(), moves.end());
  const Evaluation value = incremental(joined_);
  excess_seconds_ += seconds_since(start) - fresh_seconds_.value;
  if (excess_seconds_ > record_seconds_.value) record();
  return value;
}

template <class Full>
Evaluation LatencyWalker::run_full(std::span<const Move> moves, Full full) {
  undone_.clear();
  for (const Move& move : moves) {
    undone_.push_back({move.group, placement_[problem_.group_ops(move.group)[0]]});
    make({&move, 1});
  }
  const Evaluation value = full();
  for (std::size_t i = undone_.size(); i-- > 0;) make({&undone_[i], 1});
  return value;
}

Evaluation LatencyWalker::try_moves(std::span<const Move> moves,
                                    const std::optional<Evaluation>& cutoff) {
  // Most candidates lose by their time alone; memory costs half as much again.
  if (cutoff && cutoff->overflow == 0) return try_before(moves, cutoff->step);
  return evaluate(
      moves, [&] { return simulator_->evaluate(placement_, order_, *workspace_); },
      [&](std::span<const Move> all) { return incremental_->evaluate(all, cutoff); });
}

Evaluation LatencyWalker::try_before(std::span<const Move> moves, Nanoseconds latest) {
  return evaluate(
      moves, [&] { return simulator_->evaluate_below(latest, placement_, order_, *workspace_); },
      [&](std::span<const Move> all) {
        return incremental_->evaluate(all, Evaluation{latest, 0});
      });
}

void LatencyWalker::accept(std::span<const Move> moves, const Evaluation& value) {
  make(moves);
  value_ = value;
  acceptance_.value += 0.01;
  if (!recorded_) return;
  pending_.insert(pending_.end(), moves.begin(), moves.end());
  if (pending_.size() > kMostPending) stop_recording();
}

void LatencyWalker::make(std::span<const Move> moves) {
  for (const Move& move : moves) {
    for (const OpId op : problem_.group_ops(move.group)) placement_[op] = move.device;
  }
}

void LatencyWalker::record() {
  if (incremental_ == nullptr) incremental_ = std::make_unique<IncrementalSimulator>(simulator_);
  const auto start = std::chrono::steady_clock::now();
  const Evaluation value = incremental_->set_base(placement_, order_);
  EMPLACE_CHECK(value == value_);
  record_seconds_.add(seconds_since(start));
  recorded_ = true;
  pending_.clear();
  excess_seconds_ = 0;
}

void LatencyWalker::stop_recording() {
  recorded_ = false;
  pending_.clear();
}

void LatencyWalker::choose() {
  next_choice_ = tries_ + kChoiceInterval;
  if (fresh_seconds_.value == 0 || full_seconds_.value == 0) {
    if (!recorded_) record();
    return;
  }
  const double incremental = fresh_seconds_.value + acceptance_.value * record_seconds_.value;
  if (incremental < full_seconds_.value) {
    if (!recorded_) record();
    return;
  }
  // What it would cost now is known only by trying it now and then.
  if (recorded_) {
    stop_recording();
    next_choice_ = tries_ + kTrialInterval;
  } else {
    record();
  }
}

}  // namespace emplace
