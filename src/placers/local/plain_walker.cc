#include "placers/local/plain_walker.h"

namespace emplace {

Evaluation PlainWalker::start(const Placement& placement, const Schedule& schedule) {
  placement_ = placement;
  order_ = ReadyOrder(evaluator_.problem(), schedule);
  value_ = evaluator_.evaluate(placement_, order_);
  return value_;
}

Evaluation PlainWalker::try_moves(std::span<const Move> moves, const std::optional<Evaluation>&) {
  tried_ = placement_;
  make(moves, tried_);
  return evaluator_.evaluate(tried_, order_);
}

void PlainWalker::accept(std::span<const Move> moves, const Evaluation& value) {
  make(moves, placement_);
  value_ = value;
}

void PlainWalker::make(std::span<const Move> moves, Placement& placement) const {
  for (const Move& move : moves) {
    for (const OpId op : evaluator_.problem().group_ops(move.group)) placement[op] = move.device;
  }
}

}  // namespace emplace
