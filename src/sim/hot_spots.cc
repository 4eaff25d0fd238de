#include "sim/hot_spots.h"

#include "sim/chain_walk.h"

namespace emplace {

std::vector<HotSpot> find_hot_spots(const Problem& problem, const Placement& placement,
                                    const Timeline& timeline) {
  const ChainWalk walk(problem, placement, timeline);
  std::vector<HotSpot> spots;
  walk.backwards([&](OpId op, const ChainWalk::Cause& cause) {
    const OpSpan& span = timeline.ops[op];
    if (span.finish > span.start) {
      spots.push_back({HotSpot::Kind::kWork, op, op, span.finish - span.start});
    }
    if (cause.time < span.start) {
      const OpId blocker = walk.ran_before(op);
      if (blocker != kNoOp && timeline.ops[blocker].finish > cause.time) {
        spots.push_back({HotSpot::Kind::kBusy, op, blocker, span.start - cause.time});
        return blocker;
      }
    }
    if (cause.transfer != ChainWalk::kNoTransfer) {
      const Nanoseconds made = timeline.ops[cause.op].finish;
      if (cause.time > made) {
        spots.push_back({HotSpot::Kind::kTransfer, op, cause.op, cause.time - made});
      }
    }
    return cause.op;
  });
  return spots;
}

}  // namespace emplace
