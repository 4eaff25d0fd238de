#include "sim/critical_chain.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace emplace {
namespace {

using Kind = ChainSegment::Kind;

// What ran on one device or channel, one after the other.
struct Use {
  Nanoseconds start;
  Nanoseconds finish;
  std::uint32_t id;
};

void sort_uses(std::vector<std::vector<Use>>& resources) {
  for (std::vector<Use>& uses : resources) {
    std::sort(uses.begin(), uses.end(),
              [](const Use& a, const Use& b) { return a.start < b.start; });
  }
}

class ChainWalker {
 public:
  ChainWalker(const Problem& problem, const Placement& placement, const Timeline& timeline)
      : graph_(problem.graph()),
        placement_(placement),
        timeline_(timeline),
        device_uses_(problem.num_devices()),
        channel_uses_(problem.cluster().num_channels()) {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const OpSpan& span = timeline_.ops[op];
      if (span.finish > span.start) {
        device_uses_[placement_[op]].push_back({span.start, span.finish, op});
      }
    }
    arrivals_.resize(timeline_.transfers.size());
    std::iota(arrivals_.begin(), arrivals_.end(), std::uint32_t{0});
    std::sort(arrivals_.begin(), arrivals_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return destination(a) < destination(b); });
    for (std::uint32_t i = 0; i < timeline_.transfers.size(); ++i) {
      const Transfer& transfer = timeline_.transfers[i];
      if (transfer.shared || transfer.channel == kNoChannel) continue;
      channel_uses_[transfer.channel].push_back({transfer.start, transfer.finish, i});
    }
    sort_uses(device_uses_);
    sort_uses(channel_uses_);
  }

  CriticalChain walk() {
    const auto last =
        std::max_element(timeline_.ops.begin(), timeline_.ops.end(),
                         [](const OpSpan& a, const OpSpan& b) { return a.finish < b.finish; });
    auto op = static_cast<OpId>(last - timeline_.ops.begin());
    while (step_back(op)) {
    }
    std::reverse(chain_.segments.begin(), chain_.segments.end());
    return std::move(chain_);
  }

 private:
  // What an op waited for: an op here, or a transfer.
  struct Cause {
    Nanoseconds time = 0;
    OpId op = 0;
    std::uint32_t transfer = ChainSegment::kNone;
  };

  std::pair<TensorId, DeviceId> destination(std::uint32_t transfer) const {
    return {timeline_.transfers[transfer].tensor, timeline_.transfers[transfer].to};
  }

  std::uint32_t arrival(TensorId tensor, DeviceId device) const {
    const auto found = std::lower_bound(
        arrivals_.begin(), arrivals_.end(), std::pair(tensor, device),
        [&](std::uint32_t transfer, const auto& key) { return destination(transfer) < key; });
    EMPLACE_CHECK(found != arrivals_.end() && destination(*found) == std::pair(tensor, device));
    return *found;
  }

  // Of time 0 where the op waited for nothing.
  Cause latest_cause(OpId op) const {
    Cause latest;
    const auto consider = [&](const Cause& cause) {
      if (cause.time > latest.time) latest = cause;
    };
    for (const TensorId tensor : graph_.inputs(op)) {
      const OpId producer = graph_.producer(tensor);
      if (placement_[producer] == placement_[op]) {
        consider({timeline_.ops[producer].finish, producer});
      } else {
        const std::uint32_t transfer = arrival(tensor, placement_[op]);
        consider({timeline_.transfers[transfer].finish, producer, transfer});
      }
    }
    for (const OpId before : graph_.after(op)) consider({timeline_.ops[before].finish, before});
    return latest;
  }

  // Adds what happened between the op's cause and its finish; whether there is more before that.
  bool step_back(OpId& op) {
    const OpSpan& span = timeline_.ops[op];
    if (span.finish > span.start)
      add({Kind::kCompute, span.start, span.finish, op}, chain_.compute);
    const Cause cause = latest_cause(op);
    if (span.start > cause.time) {
      add_wait({Kind::kDeviceWait, cause.time, span.start, op}, device_uses_[placement_[op]],
               chain_.device_wait);
    }
    if (cause.time == 0) return false;
    if (cause.transfer != ChainSegment::kNone) {
      const Transfer& transfer = timeline_.transfers[cause.transfer];
      if (transfer.finish > transfer.start) {
        add({Kind::kTransfer, transfer.start, transfer.finish, op, cause.transfer},
            chain_.transfer);
      }
      if (transfer.start > transfer.queued) {
        add_wait({Kind::kChannelWait, transfer.queued, transfer.start, op, cause.transfer},
                 channel_uses_[transfer.channel], chain_.channel_wait);
      }
    }
    op = cause.op;
    return true;
  }

  void add(const ChainSegment& segment, Nanoseconds& total) {
    total += segment.length();
    chain_.segments.push_back(segment);
  }

  void add_wait(ChainSegment segment, const std::vector<Use>& uses, Nanoseconds& total) {
    auto use = std::upper_bound(uses.begin(), uses.end(), segment.start,
                                [](Nanoseconds time, const Use& u) { return time < u.finish; });
    Nanoseconds busy = 0;
    Nanoseconds longest = 0;
    for (; use != uses.end() && use->start < segment.finish; ++use) {
      const Nanoseconds length =
          std::min(use->finish, segment.finish) - std::max(use->start, segment.start);
      busy += length;
      ++segment.ahead;
      if (length <= longest) continue;
      longest = length;
      segment.longest_ahead = use->id;
    }
    segment.idle = segment.length() - busy;
    chain_.idle += segment.idle;
    total += busy;
    chain_.segments.push_back(segment);
  }

  const Graph& graph_;
  const Placement& placement_;
  const Timeline& timeline_;
  std::vector<std::uint32_t> arrivals_;  // transfers, by tensor and destination
  std::vector<std::vector<Use>> device_uses_;
  std::vector<std::vector<Use>> channel_uses_;
  CriticalChain chain_;
};

}  // namespace

CriticalChain critical_chain(const Problem& problem, const Placement& placement,
                             const Timeline& timeline) {
  return ChainWalker(problem, placement, timeline).walk();
}

}  // namespace emplace
