#include "run/transfer_costs.h"

#include <algorithm>
#include <optional>

#include "placer/run.h"

#include "placers/all.h"

#include "run/contention.h"

namespace emplace {
namespace {

struct Proposal {
  Placement placement;
  Schedule schedule = {};
};

ClusterSpec with_latency(const ClusterSpec& spec, Nanoseconds added) {
  ClusterSpec result = spec;
  for (LinkRule& rule : result.links) rule.latency += rule.throttled ? 0 : added;
  return result;
}

class TransferCosts {
 public:
  TransferCosts(const ExecutedStep& execute, const TransferCostSettings& settings,
                const Profile& profile)
      : execute_(execute), settings_(settings), profile_(profile) {}

  // What latencies are to be raised by.
  Nanoseconds learn() const {
    Nanoseconds added = 0;
    for (int round = 0; round < settings_.rounds; ++round) {
      const Proposal proposal = propose(added, round);
      const std::optional<Nanoseconds> target = target_of(proposal, added);
      if (!target) break;
      added = latency_for(proposal, added, *target);
    }
    return added;
  }

 private:
  std::shared_ptr<const Problem> problem_with(Nanoseconds added) const {
    const auto cluster = std::make_shared<const Cluster>(with_latency(profile_.cluster, added));
    return compile(profile_.graph, cluster, CostMode::kMeasured);
  }

  Proposal propose(Nanoseconds added, int round) const {
    PlaceContext context(problem_with(added));
    Budget budget;
    budget.seconds = settings_.seconds;
    const RunResult found =
        run_placer(all_placers(), context,
                   {.placer = MethodSpec::parse("auto"), .seed = static_cast<std::uint64_t>(round)},
                   budget.restarted());
    return {found.result.placement, found.result.schedule};
  }

  Nanoseconds predicted(const Proposal& proposal, Nanoseconds added) const {
    return predict(problem_with(added), proposal.placement, proposal.schedule).step;
  }

  std::optional<Nanoseconds> measured(const Proposal& proposal, Nanoseconds added) const {
    return execute_(*problem_with(added), proposal.placement, proposal.schedule);
  }

  // What the proposal is to be predicted as; nothing where it need not change. The machine's speed
  // of the moment is that of a step without transfers, right before.
  std::optional<Nanoseconds> target_of(const Proposal& proposal, Nanoseconds added) const {
    const Placement& placement = proposal.placement;
    const bool sends = std::any_of(placement.begin(), placement.end(),
                                   [&](DeviceId device) { return device != placement.front(); });
    if (!sends) return std::nullopt;
    const Proposal alone{Placement(placement.size(), busiest(placement))};
    const std::optional<Nanoseconds> alone_measured = measured(alone, added);
    const std::optional<Nanoseconds> step = measured(proposal, added);
    // Without such a step, a slow moment could not be told from slow transfers.
    if (!step || !alone_measured || *alone_measured <= 0) return std::nullopt;
    const double speed =
        static_cast<double>(predicted(alone, added)) / static_cast<double>(*alone_measured);
    const double target = speed * static_cast<double>(*step);
    if (static_cast<double>(predicted(proposal, added)) >= (1 - settings_.near) * target) {
      return std::nullopt;
    }
    return static_cast<Nanoseconds>(target);
  }

  // The device with the most ops.
  static DeviceId busiest(const Placement& placement) {
    std::vector<std::size_t> counts;
    for (const DeviceId device : placement) {
      if (device >= counts.size()) counts.resize(device + std::size_t{1});
      ++counts[device];
    }
    return static_cast<DeviceId>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  }

  // The least with which the proposal is predicted to take that long.
  Nanoseconds latency_for(const Proposal& proposal, Nanoseconds added, Nanoseconds target) const {
    constexpr Nanoseconds kMost = 1'000'000;
    constexpr Nanoseconds kExact = 100;
    Nanoseconds low = added;
    Nanoseconds high = kMost;
    if (predicted(proposal, high) < target) return added;
    while (high - low > kExact) {
      const Nanoseconds middle = low + (high - low) / 2;
      (predicted(proposal, middle) < target ? low : high) = middle;
    }
    return high;
  }

  const ExecutedStep& execute_;
  const TransferCostSettings& settings_;
  const Profile& profile_;
};

}  // namespace

void learn_transfer_costs(const ExecutedStep& execute, const TransferCostSettings& settings,
                          Profile& profile) {
  const auto& links = profile.cluster.links;
  const bool some =
      std::any_of(links.begin(), links.end(), [](const LinkRule& rule) { return !rule.throttled; });
  if (!some || profile.cluster.devices.size() < 2) return;
  const Nanoseconds added = TransferCosts(execute, settings, profile).learn();
  profile.cluster = with_latency(profile.cluster, added);
  for (LinkProfile& link : profile.links) link.added = link.throttled ? 0 : added;
}

}  // namespace emplace
