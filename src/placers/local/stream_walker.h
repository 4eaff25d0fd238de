// Walking under the throughput objective, where it is a matter of loads alone.
#pragma once

#include <optional>
#include <vector>

#include "placers/local/walker.h"

#include "stream/level.h"
#include "stream/model.h"
#include "stream/state.h"

namespace emplace {

class StreamWalker final : public Walker {
 public:
  StreamWalker(Evaluator& evaluator, const StreamPeriod& objective);

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
  void make(const Move& move);

  Evaluator& evaluator_;
  StreamModel model_;
  StreamLevel level_;
  std::optional<StreamState> state_;
  Placement placement_;
  Evaluation value_;
  std::vector<Move> undone_;
};

}  // namespace emplace
