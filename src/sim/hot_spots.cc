// Searches ask for hot spots after every few dozen moves, so they are read from what the engine
// notes, without a Timeline and without sorting: O(ops + transfers + inputs of the chain's ops),
// and no memory is taken but for the answer. tests/sim/hot_spots_test.cc compares them with a walk
// along the Timeline.
#include "sim/hot_spots.h"

#include "base/check.h"

#include "sim/program.h"
#include "sim/workspace.h"

namespace emplace {
namespace {

class ChainReader {
 public:
  ChainReader(const Problem& problem, const SimProgram& program, const Placement& placement,
              Simulator::Workspace& workspace)
      : graph_(problem.graph()), p_(program), placement_(placement), w_(workspace) {
    // A tensor's transfers are made one after the other.
    for (std::uint32_t made = w_.num_transfers; made-- > 0;) {
      w_.first_transfer[p_.tensor_id[w_.transfers[made].tensor]] = made;
    }
  }

  std::vector<HotSpot> read() {
    for (OpId op = last_op(); op != kNoOp;) op = add_spots(op);
    return std::move(spots_);
  }

 private:
  // The last of what an op waited for.
  struct Cause {
    Nanoseconds time = 0;  // at which it was over
    OpId op = kNoOp;       // none where the op was ready at once
    bool sent = false;     // it was the op's tensor that arrived
  };

  Nanoseconds finish_of(OpId op) const {
    return w_.event_time[w_.memory[p_.node_of_op[op]].finish_event];
  }

  OpId last_op() const {
    OpId last = kNoOp;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (last == kNoOp || finish_of(op) > finish_of(last)) last = op;
    }
    return last;
  }

  // Returns the op to go on with.
  OpId add_spots(OpId op) {
    const Nanoseconds start = w_.start_of(p_, op);
    const Nanoseconds finish = finish_of(op);
    const Cause cause = latest_cause(op);
    if (finish > start) spots_.push_back({HotSpot::Kind::kWork, op, op, finish - start});
    if (cause.time < start) {
      const std::uint32_t before = w_.ran_before[p_.node_of_op[op]];
      if (before != SimProgram::kNone && finish_of(p_.op_of_node[before]) > cause.time) {
        const OpId blocker = p_.op_of_node[before];
        spots_.push_back({HotSpot::Kind::kBusy, op, blocker, start - cause.time});
        return blocker;
      }
    }
    if (cause.sent && cause.time > finish_of(cause.op)) {
      spots_.push_back({HotSpot::Kind::kTransfer, op, cause.op, cause.time - finish_of(cause.op)});
    }
    return cause.op;
  }

  // Of several that end at one moment the first input counts, and inputs before control
  // dependencies.
  Cause latest_cause(OpId op) const {
    Cause latest;
    const auto consider = [&](const Cause& cause) {
      if (cause.time > latest.time) latest = cause;
    };
    for (const TensorId tensor : graph_.inputs(op)) {
      const OpId producer = graph_.producer(tensor);
      if (placement_[producer] == placement_[op]) {
        consider({finish_of(producer), producer});
      } else {
        consider({arrival(tensor, placement_[op]), producer, true});
      }
    }
    for (const OpId before : graph_.after(op)) consider({finish_of(before), before});
    return latest;
  }

  Nanoseconds arrival(TensorId tensor, DeviceId device) const {
    std::uint32_t made = w_.first_transfer[tensor];
    while (w_.transfers[made].to != device) ++made;
    EMPLACE_CHECK(p_.tensor_id[w_.transfers[made].tensor] == tensor);
    return w_.event_time[w_.transfers[made].end_event];
  }

  const Graph& graph_;
  const SimProgram& p_;
  const Placement& placement_;
  Simulator::Workspace& w_;
  std::vector<HotSpot> spots_;
};

}  // namespace

std::vector<HotSpot> read_hot_spots(const Problem& problem, const SimProgram& program,
                                    const Placement& placement, Simulator::Workspace& workspace) {
  return ChainReader(problem, program, placement, workspace).read();
}

}  // namespace emplace
