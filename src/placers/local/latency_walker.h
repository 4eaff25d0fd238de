// Walking under the latency objective, in an order that moves do not change. Every value is exact
// whichever way it is found, so the way may be chosen by the clock without any effect on what a
// search does.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "placers/local/walker.h"

namespace emplace {

class LatencyWalker final : public Walker {
 public:
  explicit LatencyWalker(Evaluator& evaluator);

  Evaluation start(const Placement& placement, const Schedule& schedule) override;
  const Placement& placement() const override { return placement_; }
  const Evaluation& value() const override { return value_; }
  Evaluation try_moves(std::span<const Move> moves,
                       const std::optional<Evaluation>& cutoff) override;
  Evaluation try_before(std::span<const Move> moves, Nanoseconds latest) override;
  void accept(std::span<const Move> moves, const Evaluation& value) override;

 private:
  // How long things take here, in seconds, averaged over the recent past; 0: not known yet.
  struct Average {
    double value = 0;
    void add(double sample) { value = value == 0 ? sample : 0.9 * value + 0.1 * sample; }
  };

  // Calls the first with the moves made in placement_, or the second with all moves since the
  // recorded base.
  template <class Full, class Incremental>
  Evaluation evaluate(std::span<const Move> moves, Full full, Incremental incremental);
  template <class Full>
  Evaluation run_full(std::span<const Move> moves, Full full);
  void make(std::span<const Move> moves);
  void record();
  void choose();
  void stop_recording();

  Evaluator& evaluator_;
  const Problem& problem_;
  std::shared_ptr<const Simulator> simulator_;
  Simulator::WorkspacePtr workspace_;
  // Only once it has been asked for: it takes several times the memory of a workspace.
  std::unique_ptr<IncrementalSimulator> incremental_;
  ReadyOrder order_;
  Placement placement_;
  Evaluation value_;

  bool recorded_ = false;      // whether incremental_ has a base: placement_ less pending_
  std::vector<Move> pending_;  // what was accepted since
  std::vector<Move> joined_;
  std::vector<Move> undone_;

  std::int64_t tries_ = 0;
  std::int64_t next_choice_ = 0;
  Average full_seconds_;
  Average fresh_seconds_;  // of an incremental evaluation with nothing pending
  Average record_seconds_;
  Average acceptance_;
  double excess_seconds_ = 0;  // that pending moves have cost since the base was recorded
};

}  // namespace emplace
