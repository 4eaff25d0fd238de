// Walking under the latency objective where a scheduler makes another order for every placement. A
// move gives all that comes before it other priorities, so nothing of the last run can be reused;
// but most moves are too slow, which shows before memory is looked at, or before anything runs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "placers/local/walker.h"

namespace emplace {

class OrderedWalker final : public Walker {
 public:
  explicit OrderedWalker(Evaluator& evaluator);

  Evaluation start(const Placement& placement, const Schedule& schedule) override;
  const Placement& placement() const override { return placement_; }
  const Evaluation& value() const override { return value_; }
  Evaluation try_moves(std::span<const Move> moves,
                       const std::optional<Evaluation>& cutoff) override;
  Evaluation try_before(std::span<const Move> moves, Nanoseconds latest) override;
  void accept(std::span<const Move> moves, const Evaluation& value) override;

 private:
  void make(std::span<const Move> moves);
  // With these moves made; ends as soon as the step cannot end before `latest`.
  Evaluation evaluate(std::span<const Move> moves, std::optional<Nanoseconds> latest);
  Evaluation evaluate_here(std::optional<Nanoseconds> latest);

  Evaluator& evaluator_;
  const Problem& problem_;
  std::shared_ptr<const Simulator> simulator_;
  Simulator::WorkspacePtr workspace_;
  bool priorities_are_paths_;
  Placement placement_;
  Evaluation value_;
  std::vector<Move> undone_;
};

}  // namespace emplace
