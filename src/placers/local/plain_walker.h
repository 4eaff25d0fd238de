// Walking by asking the evaluator about every place: for objectives that have no faster way.
#pragma once

#include <vector>

#include "placers/local/walker.h"

namespace emplace {

class PlainWalker final : public Walker {
 public:
  explicit PlainWalker(Evaluator& evaluator) : evaluator_(evaluator) {}

  Evaluation start(const Placement& placement, const Schedule& schedule) override;
  const Placement& placement() const override { return placement_; }
  const Evaluation& value() const override { return value_; }
  Evaluation try_moves(std::span<const Move> moves,
                       const std::optional<Evaluation>& cutoff) override;
  Evaluation try_before(std::span<const Move> moves, Nanoseconds) override {
    return try_moves(moves, {});
  }
  void accept(std::span<const Move> moves, const Evaluation& value) override;

 private:
  void make(std::span<const Move> moves, Placement& placement) const;

  Evaluator& evaluator_;
  ReadyOrder order_;
  Placement placement_;
  Placement tried_;
  Evaluation value_;
};

}  // namespace emplace
