// Costs that explain all that was executed, by the sum of the squared logarithms of predicted by
// measured steps, in which half and twice as long weigh the same: from those of the round before,
// by steps that halve, of all costs together and then of each. So costs differ only where proposals
// tell them apart, and pairs that none has used follow the rest. The sum never rises, but it is no
// convex function of the costs: they need not be the best.
#include "run/transfer_costs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "placer/run.h"

#include "placers/all.h"

#include "run/contention.h"
#include "run/link_classes.h"

namespace emplace {
namespace {

using Costs = std::vector<Nanoseconds>;  // by class

struct Proposal {
  Placement placement;
  Schedule schedule = {};
  Nanoseconds target = 0;  // what it is to be predicted as
};

bool may_change(const LinkClass& link) {
  return !link.own.throttled;
}

class TransferCosts {
 public:
  TransferCosts(const ExecutedStep& execute, const TransferCostSettings& settings,
                const Profile& profile)
      : execute_(execute),
        settings_(settings),
        profile_(profile),
        classes_(link_classes(profile.cluster)) {}

  const std::vector<LinkClass>& classes() const { return classes_; }

  Costs learn(LearnedTransfers& result) {
    Costs costs(classes_.size(), 0);
    bool learned = false;
    for (int round = 0; round < settings_.rounds && !learned && !result.failed; ++round) {
      Proposal proposal = propose(costs, round);
      ++result.proposals;
      if (settings_.proposed) settings_.proposed(result.proposals);
      if (!sends(proposal.placement)) {
        result = {.proposals = result.proposals, .near = true};
        break;
      }
      const std::optional<Nanoseconds> target = target_of(proposal, costs);
      result.failed = !target;
      if (!target) break;
      proposal.target = *target;
      result.error = std::expm1(log_error(proposal, problem_with(costs)));
      const bool none =
          std::all_of(costs.begin(), costs.end(), [](auto cost) { return cost == 0; });
      result.near = std::abs(result.error) <= settings_.near;
      // Steps that are faster than predicted without any cost are not the links' fault.
      learned = result.near || (none && result.error > 0);
      known_.push_back(std::move(proposal));
      if (!learned) costs = fit(std::move(costs));
    }
    return costs;
  }

 private:
  std::shared_ptr<const Problem> problem_with(const Costs& costs) const {
    ClusterSpec spec = profile_.cluster;
    spec.links.clear();
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      spec.links.push_back(classes_[i].own);
      spec.links.back().latency += costs[i];
    }
    return compile(profile_.graph, std::make_shared<const Cluster>(spec), CostMode::kMeasured);
  }

  Proposal propose(const Costs& costs, int round) const {
    PlaceContext context(problem_with(costs));
    Budget budget;
    budget.seconds = settings_.seconds;
    const RunResult found =
        run_placer(all_placers(), context,
                   {.placer = MethodSpec::parse("auto"), .seed = static_cast<std::uint64_t>(round)},
                   budget.restarted());
    return {found.result.placement, found.result.schedule};
  }

  static bool sends(const Placement& placement) {
    return std::any_of(placement.begin(), placement.end(),
                       [&](DeviceId device) { return device != placement.front(); });
  }

  using ProblemPtr = std::shared_ptr<const Problem>;

  static Nanoseconds predicted(const Proposal& proposal, const ProblemPtr& problem) {
    return predict(problem, proposal.placement, proposal.schedule).step;
  }

  // Of the prediction, by what it is to be.
  static double log_error(const Proposal& proposal, const ProblemPtr& problem) {
    const Nanoseconds step = std::max<Nanoseconds>(1, predicted(proposal, problem));
    return std::log(static_cast<double>(step) / static_cast<double>(proposal.target));
  }

  double sum_of_squares(const Costs& costs) const {
    const ProblemPtr problem = problem_with(costs);
    double sum = 0;
    for (const Proposal& proposal : known_) {
      const double error = log_error(proposal, problem);
      sum += error * error;
    }
    return sum;
  }

  // Each execution by the machine's speed right before it, so that one slow moment does not count.
  std::optional<Nanoseconds> target_of(const Proposal& proposal, const Costs& costs) {
    constexpr int kExecutions = 3;
    const auto problem = problem_with(costs);
    std::vector<Nanoseconds> targets;
    for (int i = 0; i < kExecutions; ++i) {
      const std::optional<double> slower = slower_now(busiest(proposal.placement), problem);
      if (!slower) return std::nullopt;
      const std::optional<Nanoseconds> step =
          execute_(*problem, proposal.placement, proposal.schedule);
      if (!step) return std::nullopt;
      targets.push_back(std::llround(static_cast<double>(*step) / *slower));
    }
    return std::max<Nanoseconds>(1, spread_of(targets).median);
  }

  // By a step without transfers: otherwise a slow moment could not be told from slow transfers.
  // Where the device is too small for that, by the same work as in the profile.
  std::optional<double> slower_now(DeviceId device, const ProblemPtr& problem) {
    if (!too_small_.contains(device)) {
      const Proposal alone{Placement(problem->num_ops(), device)};
      const std::optional<Nanoseconds> step = execute_(*problem, alone.placement, {});
      const Nanoseconds expected = predicted(alone, problem);
      if (step && *step > 0 && expected > 0)
        return static_cast<double>(*step) / static_cast<double>(expected);
      too_small_.insert(device);
    }
    if (!settings_.slower) return std::nullopt;
    return settings_.slower();
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

  // No cost need be larger than all the time that the last step took beyond its prediction.
  Costs fit(Costs costs) const {
    constexpr Nanoseconds kExact = 100;
    const Proposal& last = known_.back();
    double least = sum_of_squares(costs);
    Nanoseconds step = std::abs(last.target - predicted(last, problem_with(costs)));
    for (; step >= kExact; step /= 2) {
      for (const std::vector<std::size_t>& moved : directions()) {
        for (const Nanoseconds by : {step, -step}) {
          Costs next = costs;
          for (const std::size_t i : moved) next[i] = std::max<Nanoseconds>(0, next[i] + by);
          if (next == costs) continue;
          const double sum = sum_of_squares(next);
          if (sum >= least) continue;
          least = sum;
          costs = std::move(next);
          break;
        }
      }
    }
    return costs;
  }

  // Classes whose costs change together.
  std::vector<std::vector<std::size_t>> directions() const {
    std::vector<std::vector<std::size_t>> result(1);
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      if (may_change(classes_[i])) result.front().push_back(i);
    }
    if (result.front().size() == 1) return result;
    for (const std::size_t i : std::vector(result.front())) result.push_back({i});
    return result;
  }

  const ExecutedStep& execute_;
  const TransferCostSettings& settings_;
  const Profile& profile_;
  std::vector<LinkClass> classes_;
  std::vector<Proposal> known_;
  std::set<DeviceId> too_small_;  // for a step alone
};

// Rules whose classes cost the same stay as they are.
void apply(const std::vector<LinkClass>& classes, const Costs& costs, Profile& profile) {
  std::vector<LinkRule> rules;
  std::vector<LinkProfile> links;
  const auto add = [&](const LinkRule& rule, const LinkProfile& link, Nanoseconds cost) {
    rules.push_back(rule);
    rules.back().latency += cost;
    links.push_back(link);
    links.back().from = rule.from;
    links.back().to = rule.to;
    links.back().added = cost;
  };
  std::size_t i = 0;
  for (std::size_t rule = 0; rule < profile.cluster.links.size(); ++rule) {
    const std::size_t first = i;
    while (i < classes.size() && classes[i].rule == rule) ++i;
    const bool same = std::all_of(costs.begin() + static_cast<std::ptrdiff_t>(first),
                                  costs.begin() + static_cast<std::ptrdiff_t>(i),
                                  [&](Nanoseconds cost) { return cost == costs[first]; });
    if (same) {
      add(profile.cluster.links[rule], profile.links[rule], first == i ? 0 : costs[first]);
      continue;
    }
    for (std::size_t k = first; k < i; ++k) add(classes[k].own, profile.links[rule], costs[k]);
  }
  profile.cluster.links = std::move(rules);
  profile.links = std::move(links);
}

}  // namespace

void learn_transfer_costs(const ExecutedStep& execute, const TransferCostSettings& settings,
                          Profile& profile) {
  TransferCosts costs(execute, settings, profile);
  const auto& classes = costs.classes();
  if (std::none_of(classes.begin(), classes.end(), may_change) || settings.rounds == 0) return;
  LearnedTransfers result;
  const Costs learned = costs.learn(result);
  apply(classes, learned, profile);
  profile.transfers = result;
}

}  // namespace emplace
