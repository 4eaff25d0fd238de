#include "placers/local/hot_spots.h"

#include <algorithm>
#include <numeric>

namespace emplace {
namespace {

class ChainWalk {
 public:
  ChainWalk(const Problem& problem, const Placement& placement, const Timeline& timeline)
      : problem_(problem), placement_(placement), timeline_(timeline) {
    order_ops();
    order_transfers();
  }

  std::vector<HotSpot> walk() {
    std::vector<HotSpot> spots;
    OpId op = last_op();
    while (op != kNoOp) {
      const OpSpan& span = timeline_.ops[op];
      if (span.finish > span.start) {
        spots.push_back({HotSpot::Kind::kWork, op, op, span.finish - span.start});
      }
      const Arrival arrival = latest_input(op);
      if (arrival.time < span.start) {
        const OpId blocker = before_on_device(op);
        if (blocker != kNoOp && timeline_.ops[blocker].finish > arrival.time) {
          spots.push_back({HotSpot::Kind::kBusy, op, blocker, span.start - arrival.time});
          op = blocker;
          continue;
        }
      }
      if (arrival.producer == kNoOp) break;
      const Nanoseconds made = timeline_.ops[arrival.producer].finish;
      if (placement_[arrival.producer] != placement_[op] && arrival.time > made) {
        spots.push_back({HotSpot::Kind::kTransfer, op, arrival.producer, arrival.time - made});
      }
      op = arrival.producer;
    }
    return spots;
  }

 private:
  struct Arrival {
    Nanoseconds time = 0;
    OpId producer = kNoOp;
  };

  void order_ops() {
    // Ops that take time, of each device in the order of their starts.
    for (OpId op = 0; op < problem_.num_ops(); ++op) {
      if (timeline_.ops[op].finish > timeline_.ops[op].start) by_start_.push_back(op);
    }
    std::sort(by_start_.begin(), by_start_.end(), [&](OpId a, OpId b) {
      if (placement_[a] != placement_[b]) return placement_[a] < placement_[b];
      return timeline_.ops[a].start < timeline_.ops[b].start;
    });
  }

  void order_transfers() {
    by_tensor_.resize(timeline_.transfers.size());
    std::iota(by_tensor_.begin(), by_tensor_.end(), 0U);
    std::sort(by_tensor_.begin(), by_tensor_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return key(timeline_.transfers[a]) < key(timeline_.transfers[b]);
    });
  }
  static std::pair<TensorId, DeviceId> key(const Transfer& transfer) {
    return {transfer.tensor, transfer.to};
  }

  OpId last_op() const {
    OpId last = kNoOp;
    for (OpId op = 0; op < problem_.num_ops(); ++op) {
      if (last == kNoOp || timeline_.ops[op].finish > timeline_.ops[last].finish) last = op;
    }
    return last;
  }

  Nanoseconds arrival_of(TensorId tensor, DeviceId device) const {
    const auto found = std::lower_bound(
        by_tensor_.begin(), by_tensor_.end(), std::pair(tensor, device),
        [&](std::uint32_t a, const auto& wanted) { return key(timeline_.transfers[a]) < wanted; });
    if (found == by_tensor_.end() ||
        key(timeline_.transfers[*found]) != std::pair(tensor, device)) {
      return timeline_.ops[problem_.graph().producer(tensor)].finish;
    }
    return timeline_.transfers[*found].finish;
  }

  Arrival latest_input(OpId op) const {
    const Graph& graph = problem_.graph();
    Arrival latest;
    const auto consider = [&](Nanoseconds time, OpId producer) {
      if (latest.producer == kNoOp || time > latest.time) latest = {time, producer};
    };
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      const bool local = placement_[producer] == placement_[op];
      consider(local ? timeline_.ops[producer].finish : arrival_of(tensor, placement_[op]),
               producer);
    }
    for (const OpId before : graph.after(op)) consider(timeline_.ops[before].finish, before);
    return latest;
  }

  OpId before_on_device(OpId op) const {
    const auto earlier = [&](OpId a, OpId b) {
      if (placement_[a] != placement_[b]) return placement_[a] < placement_[b];
      return timeline_.ops[a].start < timeline_.ops[b].start;
    };
    const auto found = std::lower_bound(by_start_.begin(), by_start_.end(), op, earlier);
    if (found == by_start_.begin()) return kNoOp;
    const OpId before = *(found - 1);
    return placement_[before] == placement_[op] ? before : kNoOp;
  }

  const Problem& problem_;
  const Placement& placement_;
  const Timeline& timeline_;
  std::vector<OpId> by_start_;
  std::vector<std::uint32_t> by_tensor_;
};

}  // namespace

std::vector<HotSpot> find_hot_spots(const Problem& problem, const Placement& placement,
                                    const Timeline& timeline) {
  return ChainWalk(problem, placement, timeline).walk();
}

}  // namespace emplace
