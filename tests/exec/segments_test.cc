// What is launched together on GPUs, for random placements of small problems: everything is
// launched once and after what it needs, and no launches wait for each other in a circle.
#include "exec/segments.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "sim/simulator.h"

#include "run/measurement.h"
#include "support/random_problem.h"

namespace emplace::exec {
namespace {

struct CutStep {
  std::shared_ptr<const Problem> problem = nullptr;
  Placement placement = {};
  Schedule schedule = {};
  std::vector<bool> on_gpu = {};  // by device
  StepPlan plan = {};
  ProgramOrder order = {};
  std::vector<std::vector<Segment>> segments = {};  // by device; of CPUs, none

  const Graph& graph() const { return problem->graph(); }
};

CutStep random_cut(Rng& rng, bool simulated) {
  CutStep step{.problem = random_problem(rng, {.roomy = true})};
  step.placement = random_placement(*step.problem, rng);
  step.schedule = random_schedule(*step.problem, rng);
  step.plan =
      plan_step(step.graph(), step.problem->cluster(), step.placement, [](OpId) { return kNoOp; });
  if (simulated) step.order = order_of(*step.problem, step.placement, step.schedule, true);
  for (DeviceId device = 0; device < step.problem->num_devices(); ++device) {
    step.on_gpu.push_back(rng.chance(0.7));
    if (step.on_gpu.back()) wait_for_others_alone(step.graph(), device, step.plan);
  }
  for (DeviceId device = 0; device < step.problem->num_devices(); ++device) {
    step.segments.emplace_back();
    if (!step.on_gpu[device]) continue;
    step.segments.back() = cut_segments(step.graph(), step.plan, device, step.order);
  }
  return step;
}

TEST(Segments, have_every_op_once_and_in_order) {
  Rng rng(31);
  for (int round = 0; round < 500; ++round) {
    const CutStep step = random_cut(rng, round % 2 == 0);
    SCOPED_TRACE(describe(*step.problem, step.placement, step.schedule));
    for (DeviceId device = 0; device < step.problem->num_devices(); ++device) {
      if (!step.on_gpu[device]) continue;
      std::set<OpId> launched;
      for (const Segment& segment : step.segments[device]) {
        for (const OpId op : segment.ops) {
          EXPECT_EQ(step.placement[op], device);
          for (const TensorId tensor : step.graph().inputs(op)) {
            const OpId producer = step.graph().producer(tensor);
            const bool made_here =
                step.placement[producer] == device && !step.graph().is_source(producer);
            EXPECT_TRUE(!made_here || launched.contains(producer));
          }
          for (const OpId before : step.graph().after(op)) {
            const bool here = step.placement[before] == device && !step.graph().is_source(before);
            EXPECT_TRUE(!here || launched.contains(before));
          }
          EXPECT_TRUE(launched.insert(op).second) << "op " << op << " twice";
        }
      }
      std::size_t expected = 0;
      for (OpId op = 0; op < step.problem->num_ops(); ++op) {
        expected += step.placement[op] == device && !step.graph().is_source(op) ? 1 : 0;
      }
      EXPECT_EQ(launched.size(), expected);
    }
  }
}

TEST(Segments, wait_for_and_send_what_crosses_once) {
  Rng rng(32);
  for (int round = 0; round < 500; ++round) {
    const CutStep step = random_cut(rng, round % 2 == 0);
    SCOPED_TRACE(describe(*step.problem, step.placement, step.schedule));
    std::multiset<TransferId> arrivals;
    std::multiset<TransferId> sends;
    for (const auto& segments : step.segments) {
      for (const Segment& segment : segments) {
        arrivals.insert(segment.arrivals.begin(), segment.arrivals.end());
        sends.insert(segment.sends.begin(), segment.sends.end());
      }
    }
    for (TransferId transfer = 0; transfer < step.plan.transfers.size(); ++transfer) {
      const TensorCopy& from = step.plan.copies[step.plan.transfers[transfer].from];
      const DeviceId to = step.plan.copies[step.plan.transfers[transfer].to].device;
      const bool made = !step.graph().is_source(step.graph().producer(from.tensor));
      EXPECT_EQ(arrivals.count(transfer), step.on_gpu[to] ? 1U : 0U);
      EXPECT_EQ(sends.count(transfer), step.on_gpu[from.device] && made ? 1U : 0U);
    }
  }
}

// Segments and ops of CPUs, and what each waits for before it begins. A segment sends when all of
// it has been launched, and is launched after the one before it.
class Waits {
 public:
  explicit Waits(const CutStep& step) : step_(step) {
    node_of_op_.assign(step.problem->num_ops(), kNone);
    for (const auto& segments : step.segments) {
      for (std::size_t i = 0; i < segments.size(); ++i) {
        needs_.emplace_back();
        if (i > 0) needs_.back().push_back(needs_.size() - 2);
        for (const OpId op : segments[i].ops) node_of_op_[op] = needs_.size() - 1;
      }
    }
    for (OpId op = 0; op < step.problem->num_ops(); ++op) {
      if (step.graph().is_source(op) || node_of_op_[op] != kNone) continue;
      node_of_op_[op] = needs_.size();
      needs_.emplace_back();
    }
    for (OpId op = 0; op < step.problem->num_ops(); ++op) {
      if (step.graph().is_source(op)) continue;
      for (const TensorId tensor : step.graph().inputs(op)) {
        add(op, step.graph().producer(tensor));
      }
      for (const OpId before : step.graph().after(op)) add(op, before);
    }
  }

  bool in_a_circle() {
    std::vector<std::size_t> waiting(needs_.size(), 0);
    std::vector<std::vector<std::size_t>> waited_for(needs_.size());
    for (std::size_t node = 0; node < needs_.size(); ++node) {
      waiting[node] = needs_[node].size();
      for (const std::size_t other : needs_[node]) waited_for[other].push_back(node);
    }
    std::vector<std::size_t> free;
    for (std::size_t node = 0; node < needs_.size(); ++node) {
      if (waiting[node] == 0) free.push_back(node);
    }
    std::size_t done = 0;
    while (!free.empty()) {
      const std::size_t node = free.back();
      free.pop_back();
      ++done;
      for (const std::size_t next : waited_for[node]) {
        if (--waiting[next] == 0) free.push_back(next);
      }
    }
    return done < needs_.size();
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // Within a segment the order of launches is enough.
  void add(OpId op, OpId before) {
    if (step_.graph().is_source(before)) return;
    const bool same_device = step_.placement[op] == step_.placement[before];
    if (same_device && step_.on_gpu[step_.placement[op]]) return;
    needs_[node_of_op_[op]].push_back(node_of_op_[before]);
  }

  const CutStep& step_;
  std::vector<std::size_t> node_of_op_;
  std::vector<std::vector<std::size_t>> needs_;
};

TEST(Segments, never_wait_for_what_comes_of_what_they_send) {
  Rng rng(33);
  for (int round = 0; round < 2000; ++round) {
    const CutStep step = random_cut(rng, round % 2 == 0);
    ASSERT_FALSE(Waits(step).in_a_circle())
        << describe(*step.problem, step.placement, step.schedule);
  }
}

}  // namespace
}  // namespace emplace::exec
