// The chain of a timeline, from the end of the step back along the graph. Each op's time splits at
// the moment at which the last thing that it waited for was over: after that it waited for its
// device and ran, and before that lies the time of that last thing, an op or a transfer, which
// splits in the same way. So the segments meet, and together they are the whole step.
#include "sim/critical_chain.h"

#include <algorithm>
#include <utility>

#include "sim/chain_walk.h"

namespace emplace {
namespace {

using Kind = ChainSegment::Kind;

class ChainCollector {
 public:
  ChainCollector(const Problem& problem, const Placement& placement, const Timeline& timeline)
      : placement_(placement),
        timeline_(timeline),
        walk_(problem, placement, timeline),
        sent_on_(problem.cluster().num_channels()) {
    for (std::uint32_t i = 0; i < timeline_.transfers.size(); ++i) {
      const Transfer& transfer = timeline_.transfers[i];
      if (transfer.shared || transfer.channel == kNoChannel) continue;
      sent_on_[transfer.channel].push_back(i);
    }
    for (std::vector<std::uint32_t>& sent : sent_on_) {
      std::sort(sent.begin(), sent.end(), [&](std::uint32_t a, std::uint32_t b) {
        return timeline_.transfers[a].start < timeline_.transfers[b].start;
      });
    }
  }

  CriticalChain collect() {
    walk_.backwards([&](OpId op, const ChainWalk::Cause& cause) {
      add_op(op, cause);
      if (cause.transfer != ChainWalk::kNoTransfer) add_transfer(op, cause.transfer);
      return cause.op;
    });
    std::reverse(chain_.segments.begin(), chain_.segments.end());
    return std::move(chain_);
  }

 private:
  // What happened between the end of the op's cause and its finish.
  void add_op(OpId op, const ChainWalk::Cause& cause) {
    const OpSpan& span = timeline_.ops[op];
    if (span.finish > span.start)
      add({Kind::kCompute, span.start, span.finish, op}, chain_.compute);
    if (span.start == cause.time) return;
    add_wait({Kind::kDeviceWait, cause.time, span.start, op}, walk_.ran_on(placement_[op]),
             timeline_.ops, chain_.device_wait);
  }

  void add_transfer(OpId op, std::uint32_t index) {
    const Transfer& transfer = timeline_.transfers[index];
    if (transfer.finish > transfer.start) {
      add({Kind::kTransfer, transfer.start, transfer.finish, op, index}, chain_.transfer);
    }
    if (transfer.start == transfer.queued) return;
    add_wait({Kind::kChannelWait, transfer.queued, transfer.start, op, index},
             sent_on_[transfer.channel], timeline_.transfers, chain_.channel_wait);
  }

  void add(const ChainSegment& segment, Nanoseconds& total) {
    total += segment.length();
    chain_.segments.push_back(segment);
  }

  // `uses` are what the device or channel was used for, in order, as indices into `spans`.
  template <class Uses, class Span>
  void add_wait(ChainSegment segment, const Uses& uses, const std::vector<Span>& spans,
                Nanoseconds& total) {
    auto use = std::upper_bound(
        uses.begin(), uses.end(), segment.start,
        [&](Nanoseconds time, std::uint32_t id) { return time < spans[id].finish; });
    Nanoseconds busy = 0;
    Nanoseconds longest = 0;
    for (; use != uses.end() && spans[*use].start < segment.finish; ++use) {
      const Nanoseconds length =
          std::min(spans[*use].finish, segment.finish) - std::max(spans[*use].start, segment.start);
      busy += length;
      ++segment.ahead;
      if (length <= longest) continue;
      longest = length;
      segment.longest_ahead = *use;
    }
    segment.idle = segment.length() - busy;
    chain_.idle += segment.idle;
    total += busy;
    chain_.segments.push_back(segment);
  }

  const Placement& placement_;
  const Timeline& timeline_;
  ChainWalk walk_;
  std::vector<std::vector<std::uint32_t>> sent_on_;  // by channel: transfers, by start
  CriticalChain chain_;
};

}  // namespace

CriticalChain critical_chain(const Problem& problem, const Placement& placement,
                             const Timeline& timeline) {
  return ChainCollector(problem, placement, timeline).collect();
}

}  // namespace emplace
