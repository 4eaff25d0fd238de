#include "tensor/traffic.h"

#include <algorithm>
#include <cmath>

namespace emplace {

Traffic::Traffic(const Workers& workers) : workers_(workers) {}

Traffic::Traffic(const Workers& workers, const Cluster& cluster,
                 const std::vector<DeviceId>& devices, const CollectiveTimes* measured)
    : workers_(workers),
      network_(std::in_place, workers, cluster, devices, measured),
      loads_(cluster.num_channels(), 0) {}

void Traffic::send(Worker from, Worker to, double bytes, double transfers, bool in_turn) {
  if (from == to || bytes <= 0) return;
  bytes_ += bytes;
  if (!network_) return;
  const Network::Link& link = network_->link(from, to);
  const double time = link.ns_per_transfer * transfers + link.ns_per_byte * bytes;
  double& load = loads_[link.channel];
  load = link.unlimited && !in_turn ? std::max(load, time) : load + time;
}

std::int64_t Traffic::settle() {
  double cost = bytes_;
  if (network_) {
    const auto longest = std::max_element(loads_.begin(), loads_.end());
    cost = longest == loads_.end() ? 0 : *longest;
    std::fill(loads_.begin(), loads_.end(), 0);
  }
  bytes_ = 0;
  return std::llround(cost);
}

std::int64_t Traffic::settle(const Stage& stage) {
  const std::int64_t sent = settle();
  return stage.measured ? std::llround(*stage.measured) : sent;
}

const Traffic::Sources& Traffic::sources_of(const Spread& spread) {
  const auto [at, added] = sources_.try_emplace(spread.roles);
  if (added) {
    const int parts = spread.partial_count(workers_);
    for (int part = 0; part < parts; ++part) {
      std::vector<std::vector<Worker>>& by_worker = at->second.emplace_back();
      for (Worker to = 0; to < workers_.count(); ++to) {
        by_worker.push_back(sources_for(spread.roles, workers_, to, part));
      }
    }
  }
  return at->second;
}

const std::vector<std::vector<Worker>>& Traffic::groups_of(LevelSet levels) {
  const auto [at, added] = groups_.try_emplace(levels);
  for (Worker worker = 0; added && worker < workers_.count(); ++worker) {
    at->second.push_back(workers_.group_of(worker, levels));
  }
  return at->second;
}

void Traffic::fetch(const tdl::Region& needed, const Spread& kept,
                    const std::vector<Worker>& sources, Worker to, Bytes element_bytes) {
  for (const Worker from : sources) {
    if (from == to) continue;
    const tdl::Position elements = common_volume(kept.regions[from], needed);
    send(from, to, static_cast<double>(elements * element_bytes));
  }
}

std::int64_t Traffic::to_read(const std::vector<tdl::Region>& needed, const Spread& kept,
                              Bytes element_bytes) {
  bool all_there = true;
  for (Worker to = 0; to < workers_.count() && all_there; ++to) {
    all_there = contains(kept.regions[to], needed[to]);
  }
  if (all_there) return 0;
  if (const LevelSet levels = network_ ? network_->levels_to_gather(needed, kept) : 0) {
    const auto& stages =
        network_->stages(levels, volume(needed[0]) * element_bytes, Exchange::kGather);
    if (stages.size() > 1 || stages[0].ring || stages[0].measured) {
      return to_gather(needed, kept, levels, stages, element_bytes);
    }
  }
  const std::vector<std::vector<Worker>>& sources = sources_of(kept)[0];
  for (Worker to = 0; to < workers_.count(); ++to) {
    fetch(needed[to], kept, sources[to], to, element_bytes);
  }
  return settle();
}

// As Movers::gather does it: what everybody has grows from stage to stage.
std::int64_t Traffic::to_gather(const std::vector<tdl::Region>& needed, const Spread& kept,
                                LevelSet levels, const std::vector<Stage>& stages,
                                Bytes element_bytes) {
  double alike = 1;  // so many have the same, and send a part of it each
  for (std::size_t level = 0; level < workers_.levels(); ++level) {
    if (has_level(levels, level) && kept.roles[level] == LevelRole::kSame) {
      alike *= workers_.factor(level);
    }
  }
  std::vector<double> held;
  for (Worker worker = 0; worker < workers_.count(); ++worker) {
    const tdl::Position own = common_volume(kept.regions[worker], needed[worker]);
    held.push_back(static_cast<double>(own * element_bytes) / alike);
  }
  std::int64_t cost = 0;
  for (const Stage& stage : stages) {
    std::vector<double> next = held;
    for (Worker to = 0; to < workers_.count(); ++to) {
      const std::vector<Worker>& group = groups_of(stage.levels)[to];
      for (const Worker from : group) {
        if (from == to) continue;
        next[to] += held[from];
        if (!stage.ring) send(from, to, held[from]);
      }
      if (stage.ring) {
        send(neighbour_before(group, to), to, next[to] - held[to],
             static_cast<double>(group.size() - 1));
      }
    }
    held = std::move(next);
    cost += settle(stage);
  }
  return cost;
}

// As Movers::reduce does it, `stages` in the order of a gathering.
std::int64_t Traffic::to_reduce(const Spread& made, const Spread& reduced,
                                const std::vector<Stage>& stages, Bytes element_bytes) {
  std::int64_t cost = 0;
  LevelSet later = made.partial_levels();
  const Sources& sources = sources_of(made);
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    const bool first = stage == stages.rbegin();
    later &= ~stage->levels;
    const auto& groups = groups_of(stage->levels);
    const auto& counterparts = groups_of(later);
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      const std::vector<Worker>& group = groups[worker];
      std::vector<const tdl::Region*> counted;
      for (const Worker counterpart : counterparts[worker]) {
        const tdl::Region& region = reduced.regions[counterpart];
        // Counterparts that are to have the same share one sum.
        if (std::any_of(counted.begin(), counted.end(),
                        [&](const tdl::Region* known) { return *known == region; })) {
          continue;
        }
        counted.push_back(&region);
        if (first && !stage->ring) {
          for (int part = 0; part < std::ssize(group); ++part) {
            fetch(region, made, sources[static_cast<std::size_t>(part)][worker], worker,
                  element_bytes);
          }
          continue;
        }
        const auto bytes = static_cast<double>(volume(region) * element_bytes);
        for (const Worker from : group) {
          if (first) fetch(region, made, sources[0][from], from, element_bytes);
          if (!stage->ring) send(from, worker, bytes);
        }
        // Round to the worker from the one after it, so past everybody but that one. Sums for
        // different workers pass a link one after the other, those for one worker together.
        for (const Worker at : group) {
          const Worker before = neighbour_before(group, at);
          if (stage->ring && before != worker) send(before, at, bytes, 1, counted.size() == 1);
        }
      }
    }
    cost += settle(*stage);
  }
  return cost;
}

std::int64_t Traffic::to_keep(const Spread& made, const Spread& reduced, const Spread& kept,
                              Bytes element_bytes) {
  if (!made.partial()) return to_read(kept.regions, made, element_bytes);
  return to_reduce(made, reduced, element_bytes) + to_read(kept.regions, reduced, element_bytes);
}

std::int64_t Traffic::to_reduce(const Spread& made, const Spread& reduced, Bytes element_bytes) {
  const LevelSet partial = made.partial_levels();
  const std::vector<Stage> at_once{{partial, false}};
  const bool staged = network_ && !network_->is_flat();
  return to_reduce(
      made, reduced,
      staged ? network_->stages(partial, volume(made.regions[0]) * element_bytes, Exchange::kReduce)
             : at_once,
      element_bytes);
}

}  // namespace emplace
