#include "placers/local/stream_walker.h"

#include "base/check.h"

namespace emplace {

StreamWalker::StreamWalker(Evaluator& evaluator, const StreamPeriod& objective)
    : evaluator_(evaluator), model_(evaluator.problem(), objective.overlap), level_(model_) {}

Evaluation StreamWalker::start(const Placement& placement, const Schedule&) {
  const Problem& problem = evaluator_.problem();
  evaluator_.count(1);
  placement_ = placement;
  std::vector<DeviceId> device_of(problem.num_groups());
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    device_of[group] = placement[problem.group_ops(group)[0]];
  }
  state_.emplace(level_, device_of);
  value_ = {state_->period(), state_->overflow()};
  return value_;
}

Evaluation StreamWalker::try_moves(std::span<const Move> moves, const std::optional<Evaluation>&) {
  evaluator_.count(1);
  undone_.clear();
  for (const Move& move : moves) {
    undone_.push_back({move.group, state_->device_of(move.group)});
    make(move);
  }
  const Evaluation value{state_->period(), state_->overflow()};
  for (std::size_t i = undone_.size(); i-- > 0;) make(undone_[i]);
  return value;
}

void StreamWalker::accept(std::span<const Move> moves, const Evaluation& value) {
  for (const Move& move : moves) {
    make(move);
    for (const OpId op : evaluator_.problem().group_ops(move.group)) placement_[op] = move.device;
  }
  value_ = value;
  EMPLACE_CHECK(value.step == state_->period() && value.overflow == state_->overflow());
}

void StreamWalker::make(const Move& move) {
  if (state_->device_of(move.group) == move.device) return;
  state_->probe(move.group, move.device);
  state_->move(move.group, move.device);
}

}  // namespace emplace
