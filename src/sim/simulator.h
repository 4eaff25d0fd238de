// The simulator: exactly docs/simulator.md, in integers. `Simulator` is immutable and shared by all
// threads; each thread brings a Workspace, after whose first use an evaluation allocates nothing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

struct SimProgram;

// What a search needs to know of a placement.
struct Evaluation {
  Nanoseconds step = 0;
  Bytes overflow = 0;  // bytes above capacity, summed over devices

  bool fits() const { return overflow == 0; }
  // Fitting first, then by how little does not fit, then by time.
  friend bool operator<(const Evaluation& a, const Evaluation& b) {
    return a.overflow != b.overflow ? a.overflow < b.overflow : a.step < b.step;
  }
  friend bool operator==(const Evaluation& a, const Evaluation& b) = default;
};

// Something on the critical chain of a step (sim/hot_spots.h).
struct HotSpot {
  enum class Kind { kTransfer, kBusy, kWork };

  Kind kind = Kind::kWork;
  OpId op = 0;     // that waits, or works
  OpId other = 0;  // that made the tensor it waits for, or keeps its device busy
  Nanoseconds length = 0;

  friend bool operator==(const HotSpot& a, const HotSpot& b) = default;
};

// A schedule made ready for many evaluations: each op's place in the order (-priority, index), and
// each node's among the nodes.
class ReadyOrder {
 public:
  ReadyOrder() = default;  // FIFO
  ReadyOrder(const Problem& problem, const Schedule& schedule);

  bool fifo() const { return rank_of_op_.empty(); }
  std::span<const std::uint32_t> rank_of_op() const { return rank_of_op_; }
  const std::vector<std::uint32_t>& rank_of_node() const { return rank_of_node_; }
  const std::vector<std::uint32_t>& node_of_rank() const { return node_of_rank_; }

 private:
  std::vector<std::uint32_t> rank_of_op_;
  std::vector<std::uint32_t> rank_of_node_;
  std::vector<std::uint32_t> node_of_rank_;
};

class Simulator {
 public:
  class Workspace;
  struct WorkspaceDeleter {
    void operator()(Workspace* workspace) const;
  };
  using WorkspacePtr = std::unique_ptr<Workspace, WorkspaceDeleter>;

  explicit Simulator(std::shared_ptr<const Problem> problem);
  ~Simulator();

  const Problem& problem() const { return *problem_; }
  const SimProgram& program() const { return *program_; }
  WorkspacePtr make_workspace() const;

  // The placement must be valid (check_placement). Peaks, where wanted, are written by device.
  Evaluation evaluate(const Placement& placement, const ReadyOrder& order, Workspace& workspace,
                      std::span<Bytes> peaks = {}) const;
  // The same of a placement whose step is below the limit. Of others it gives up early, and says a
  // step that is not below it, and no overflow.
  Evaluation evaluate_below(Nanoseconds limit, const Placement& placement, const ReadyOrder& order,
                            Workspace& workspace) const;
  // The same as `evaluate`, with the time at which each op starts, by op.
  Evaluation evaluate_with_starts(const Placement& placement, const ReadyOrder& order,
                                  Workspace& workspace, std::span<Nanoseconds> starts) const;
  // Where the step loses time, from its end to its beginning; with the peaks where wanted.
  std::vector<HotSpot> hot_spots(const Placement& placement, const ReadyOrder& order,
                                 Workspace& workspace, std::span<Bytes> peaks = {}) const;
  // The step time alone, without looking at memory: about two thirds of the cost.
  Nanoseconds step_time(const Placement& placement, const ReadyOrder& order,
                        Workspace& workspace) const;

  // One run with everything that happened, for reports.
  Timeline run(const Placement& placement, const Schedule& schedule) const;

 private:
  // A run with the time of every event.
  Nanoseconds run_with_times(const Placement& placement, const ReadyOrder& order,
                             Workspace& workspace) const;
  // After a run that noted memory events: the peaks, and what of them does not fit.
  Bytes find_overflow(const Placement& placement, Workspace& workspace) const;

  std::shared_ptr<const Problem> problem_;
  std::unique_ptr<const SimProgram> program_;
};

}  // namespace emplace
