#include "placers/local/ordered_walker.h"

#include <algorithm>

#include "base/check.h"

namespace emplace {

OrderedWalker::OrderedWalker(Evaluator& evaluator)
    : evaluator_(evaluator),
      problem_(evaluator.problem()),
      simulator_(evaluator.simulator()),
      workspace_(simulator_->make_workspace()),
      priorities_are_paths_(evaluator.scheduler() == "pct") {
  EMPLACE_CHECK(evaluator.order_follows_placement());
}

Evaluation OrderedWalker::start(const Placement& placement, const Schedule&) {
  placement_ = placement;
  value_ = evaluate_here({});
  return value_;
}

Evaluation OrderedWalker::try_moves(std::span<const Move> moves,
                                    const std::optional<Evaluation>& cutoff) {
  if (cutoff && cutoff->overflow == 0) return evaluate(moves, cutoff->step);
  return evaluate(moves, {});
}

Evaluation OrderedWalker::try_before(std::span<const Move> moves, Nanoseconds latest) {
  return evaluate(moves, latest);
}

void OrderedWalker::accept(std::span<const Move> moves, const Evaluation& value) {
  make(moves);
  value_ = value;
}

void OrderedWalker::make(std::span<const Move> moves) {
  for (const Move& move : moves) {
    for (const OpId op : problem_.group_ops(move.group)) placement_[op] = move.device;
  }
}

Evaluation OrderedWalker::evaluate(std::span<const Move> moves, std::optional<Nanoseconds> latest) {
  undone_.clear();
  for (const Move& move : moves) {
    undone_.push_back({move.group, placement_[problem_.group_ops(move.group)[0]]});
    make({&move, 1});
  }
  const Evaluation value = evaluate_here(latest);
  for (std::size_t i = undone_.size(); i-- > 0;) make({&undone_[i], 1});
  return value;
}

Evaluation OrderedWalker::evaluate_here(std::optional<Nanoseconds> latest) {
  evaluator_.count(1);
  const Schedule schedule = evaluator_.schedule_of(placement_);
  if (latest && priorities_are_paths_ && !schedule.priorities.empty()) {
    // No step is shorter than the longest path through it, with its transfers.
    const Nanoseconds path =
        *std::max_element(schedule.priorities.begin(), schedule.priorities.end());
    if (path >= *latest) return {path, 0};
  }
  const ReadyOrder order(problem_, schedule);
  if (latest) return simulator_->evaluate_below(*latest, placement_, order, *workspace_);
  return simulator_->evaluate(placement_, order, *workspace_);
}

}  // namespace emplace
