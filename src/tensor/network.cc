#include "tensor/network.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace emplace {

Network::Network(const Workers& workers, const Cluster& cluster,
                 const std::vector<DeviceId>& devices, const CollectiveTimes* measured)
    : workers_(workers),
      loads_(cluster.num_channels(), 0),
      flat_(measured == nullptr),
      measured_(measured) {
  std::set<ChannelId> used;
  for (Worker from = 0; from < workers.count(); ++from) {
    launch_ = std::max(launch_, cluster.kind_of(devices[from]).launch_us * 1000);
    for (Worker to = 0; to < workers.count(); ++to) {
      Link& link = links_.emplace_back();
      if (from == to) continue;
      const auto* found = cluster.link(devices[from], devices[to]);
      if (found == nullptr) {
        fail(ErrorKind::kUnsupported,
             "there is no link from '{}' to '{}', and workers that share tensors need one",
             cluster.device(devices[from]).name, cluster.device(devices[to]).name);
      }
      link.channel = found->channel;
      link.unlimited = found->unlimited;
      link.ns_per_byte = 1e9 / static_cast<double>(found->bandwidth);
      link.ns_per_transfer = static_cast<double>(found->latency + found->hold);
      const Link& first = links_[1];  // from the first to the second
      const bool apart = link.unlimited || used.insert(link.channel).second;
      flat_ = flat_ && apart && link.ns_per_byte == first.ns_per_byte;
    }
  }
  find_tiers();
}

void Network::find_tiers() {
  std::vector<double> slowest(workers_.levels(), 0);
  for (Worker from = 0; from < workers_.count(); ++from) {
    for (Worker to = 0; to < workers_.count(); ++to) {
      if (from == to) continue;
      std::size_t level = 0;
      while (workers_.digit(from, level) == workers_.digit(to, level)) ++level;
      slowest[level] = std::max(slowest[level], link(from, to).ns_per_byte);
    }
  }
  for (std::size_t level = 0; level < slowest.size(); ++level) {
    const bool same = level > 0 && slowest[level] == slowest[level - 1];
    tiers_.push_back(level == 0 ? 0 : tiers_.back() + (same ? 0 : 1));
  }
}

double Network::time_on_links(const Stage& stage, double each) {
  std::fill(loads_.begin(), loads_.end(), 0);
  const int rounds = workers_.group_size(stage.levels) - 1;
  for (Worker to = 0; to < workers_.count(); ++to) {
    const std::vector<Worker> group = workers_.group_of(to, stage.levels);
    const auto add = [&](Worker from, double times) {
      const Link& by = link(from, to);
      const double time = times * (by.ns_per_transfer + by.ns_per_byte * each);
      double& load = loads_[by.channel];
      load = by.unlimited ? std::max(load, time) : load + time;
    };
    if (stage.ring) {
      add(neighbour_before(group, to), rounds);
      continue;
    }
    for (const Worker from : group) {
      if (from != to) add(from, 1);
    }
  }
  return *std::max_element(loads_.begin(), loads_.end());
}

double Network::time_of(const Stage& stage, double each) {
  // Whoever gets something puts it together, or adds it up.
  const int launches = stage.ring ? workers_.group_size(stage.levels) - 1 : 1;
  return time_on_links(stage, each) + launch_ * launches;
}

// Groups that the fastest links join are taken to be machines.
std::optional<Network::Plan> Network::measured_single(LevelSet levels, double each,
                                                      Exchange exchange) {
  if (measured_ == nullptr) return std::nullopt;
  LevelSet between = 0;
  for (std::size_t level = 0; level < workers_.levels(); ++level) {
    if (has_level(levels, level) && tiers_[level] < tiers_.back()) between |= level_set(level);
  }
  const int devices = workers_.group_size(levels);
  const auto op =
      exchange == Exchange::kGather ? Collective::kAllGather : Collective::kReduceScatter;
  Stage stage{levels, false,
              measured_->nanoseconds(op, devices, workers_.group_size(between), each * devices)};
  if (!stage.measured) return std::nullopt;
  // Transfers that are simulated take their latencies.
  *stage.measured = std::max(*stage.measured, time_on_links(stage, 0));
  if (const double linked = time_on_links(stage, each); linked > 0) {
    stage.stretch = *stage.measured / linked;
  }
  return Plan{*stage.measured, {stage}};
}

// All levels at once, one after the other, or along a ring.
Network::Plan Network::best_single(LevelSet levels, double each, Exchange exchange) {
  if (auto measured = measured_single(levels, each, exchange)) return *measured;
  Plan best{time_of({levels, false}, each), {{levels, false}}};
  if (workers_.group_size(levels) < 3) return best;
  const double ring = time_of({levels, true}, each);
  if (ring < best.first) best = {ring, {{levels, true}}};
  Plan split{0, {}};
  for (std::size_t level = 0; level < workers_.levels(); ++level) {
    if (!has_level(levels, level)) continue;
    split.second.push_back({level_set(level), false});
    split.first += time_of(split.second.back(), each);
    each *= workers_.factor(level);
  }
  return split.second.size() > 1 && split.first < best.first ? split : best;
}

const std::vector<Stage>& Network::stages(LevelSet levels, Bytes bytes, Exchange exchange) {
  const auto [at, added] = stages_.try_emplace({levels, bytes, exchange});
  if (!added) return at->second;
  at->second = best_stages(levels, bytes, exchange);
  for (const Stage& stage : at->second) {
    if (measured_ != nullptr && !stage.measured) {
      unmeasured_.insert(workers_.group_size(stage.levels));
    }
  }
  return at->second;
}

std::vector<Stage> Network::best_stages(LevelSet levels, Bytes bytes, Exchange exchange) {
  const double each = static_cast<double>(bytes) / workers_.group_size(levels);
  Plan best = best_single(levels, each, exchange);
  if (best.second[0].measured) return std::move(best.second);
  Plan tiered{0, {}};
  double before = each;
  for (int tier = 0; tier <= tiers_.back(); ++tier) {
    LevelSet among = 0;
    for (std::size_t level = 0; level < workers_.levels(); ++level) {
      if (tiers_[level] == tier && has_level(levels, level)) among |= level_set(level);
    }
    if (among == 0) continue;
    const Plan plan = best_single(among, before, exchange);
    tiered.first += plan.first;
    tiered.second.insert(tiered.second.end(), plan.second.begin(), plan.second.end());
    before *= workers_.group_size(among);
  }
  // What was measured is believed, even where links alone promise more.
  const bool measured = std::any_of(tiered.second.begin(), tiered.second.end(),
                                    [](const Stage& stage) { return stage.measured.has_value(); });
  const bool by_tiers = measured || tiered.first < best.first;
  return by_tiers ? std::move(tiered.second) : std::move(best.second);
}

LevelSet Network::levels_to_reduce(const Spread& made) const {
  int slowest = tiers_.empty() ? 0 : tiers_.back();
  for (std::size_t level = 0; level < workers_.levels(); ++level) {
    if (made.roles[level] == LevelRole::kPartial) slowest = std::min(slowest, tiers_[level]);
  }
  LevelSet levels = 0;
  for (std::size_t level = 0; level < workers_.levels(); ++level) {
    const bool same = made.roles[level] == LevelRole::kSame;
    if (!same || tiers_[level] >= slowest) levels |= level_set(level);
  }
  return levels;
}

LevelSet Network::levels_to_gather(const std::vector<tdl::Region>& needed,
                                   const Spread& kept) const {
  if (flat_) return 0;
  const std::size_t levels = workers_.levels();
  const auto is_same = [&](const std::vector<tdl::Region>& regions, std::size_t level) {
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      const Worker first = workers_.with_digit(worker, level, 0);
      if (first != worker && regions[worker] != regions[first]) return false;
    }
    return true;
  };
  LevelSet same = 0, gathered = 0;
  int outermost = 0;
  for (std::size_t level = levels; level-- > 0;) {
    if (!is_same(needed, level)) continue;
    same |= level_set(level);
    if (kept.roles[level] != LevelRole::kParts) continue;
    gathered |= level_set(level);
    outermost = tiers_[level];
  }
  if (gathered == 0) return 0;
  // Parts must come from within the groups that need the same.
  for (Worker to = 0; to < workers_.count(); ++to) {
    if (is_empty(needed[to])) return 0;
    for (const Worker from : sources_for(kept.roles, workers_, to)) {
      if (!workers_.differ_only_in(from, to, same) &&
          common_volume(kept.regions[from], needed[to]) > 0) {
        return 0;
      }
    }
  }
  // Those who have the same fetch a part each from afar, and exchange it.
  for (std::size_t level = 0; level < levels; ++level) {
    if (has_level(same, level) && kept.roles[level] == LevelRole::kSame &&
        tiers_[level] > outermost) {
      if (!is_same(kept.regions, level)) return 0;
      gathered |= level_set(level);
    }
  }
  return gathered;
}

}  // namespace emplace
