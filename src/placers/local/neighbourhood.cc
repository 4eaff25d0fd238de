// Proposes; whoever asks decides. Two thirds of the proposals are about the critical chain: its
// spots are drawn in proportion to their length, from running sums (O(log spots)), and a spot says
// which of two groups to bring together or apart. The rest moves borders between devices, swaps, or
// takes something heavy off the fullest device, drawn by the square of a uniform number from the
// groups by size.
//
// Every proposal is valid: only allowed devices, and where links are missing, only if all tensors
// of the moved groups still have theirs. A cluster moves as one, save for groups that may not use
// the device. The spots are as old as the last look and may describe a placement that was left;
// then a proposal is merely a worse one. O(groups moved + edges of these). Ours.
#include "placers/local/neighbourhood.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace emplace {
namespace {

constexpr int kTries = 12;
constexpr std::uint64_t kLongestRun = 8;
constexpr std::uint64_t kLongestSegment = 24;
// How often each kind is proposed, where there is something for it to do.
constexpr std::array<double, Neighbourhood::kNumKinds> kShare = {0.03, 0.10, 0.14, 0.03,
                                                                 0.33, 0.27, 0.06, 0.04};

}  // namespace

Neighbourhood::Neighbourhood(const Problem& problem, const CoarseGraph& graph)
    : problem_(problem),
      graph_(graph),
      all_linked_(problem.cluster().fully_linked()),
      clusters_(single_groups(graph.size())) {
  heavy_.resize(graph.size());
  std::iota(heavy_.begin(), heavy_.end(), GroupId{0});
  std::vector<Bytes> held(graph.size(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    held[problem.group_of(op)] += problem.resident_bytes(op);
    for (const TensorId tensor : problem.graph().outputs(op)) {
      held[problem.group_of(op)] += problem.graph().memory_bytes(tensor);
    }
  }
  std::stable_sort(heavy_.begin(), heavy_.end(),
                   [&](GroupId a, GroupId b) { return held[a] > held[b]; });
}

void Neighbourhood::set_focus(std::vector<HotSpot> spots, std::vector<Bytes> peaks) {
  spots_ = std::move(spots);
  peaks_ = std::move(peaks);
  for (int kind = 0; kind < 3; ++kind) {
    by_kind_[kind].clear();
    running_length_[kind].clear();
  }
  for (std::uint32_t i = 0; i < spots_.size(); ++i) {
    const int kind = static_cast<int>(spots_[i].kind);
    auto& lengths = running_length_[kind];
    by_kind_[kind].push_back(i);
    lengths.push_back((lengths.empty() ? 0 : lengths.back()) + spots_[i].length);
  }
}

const HotSpot* Neighbourhood::random_spot(HotSpot::Kind kind, Rng& rng) const {
  const auto& lengths = running_length_[static_cast<int>(kind)];
  if (lengths.empty() || lengths.back() <= 0) return nullptr;
  const auto drawn =
      static_cast<Nanoseconds>(rng.below(static_cast<std::uint64_t>(lengths.back())));
  const auto found = std::upper_bound(lengths.begin(), lengths.end(), drawn);
  return &spots_[by_kind_[static_cast<int>(kind)][found - lengths.begin()]];
}

bool Neighbourhood::propose(const Placement& placement, Rng& rng, std::vector<Move>& moves) {
  double drawn = rng.uniform();
  int kind = 0;
  while (kind + 1 < kNumKinds && drawn >= kShare[kind]) drawn -= kShare[kind++];
  return propose(static_cast<Kind>(kind), placement, rng, moves);
}

bool Neighbourhood::propose(Kind kind, const Placement& placement, Rng& rng,
                            std::vector<Move>& moves) {
  moves.clear();
  last_kind_ = kind;
  if (problem_.num_devices() < 2 || graph_.size() == 0) return false;
  switch (kind) {
    case Kind::kRandom: {
      const GroupId group = random_group(rng);
      add_group_cluster(group, random_device(device_of(placement, group), rng), placement, moves);
      break;
    }
    case Kind::kNeighbour:
      move_across_border(placement, rng, false, moves);
      break;
    case Kind::kBoundary:
      move_across_border(placement, rng, true, moves);
      break;
    case Kind::kSwap:
      swap_clusters(placement, rng, moves);
      break;
    case Kind::kTransfer:
      end_transfer(placement, rng, moves);
      break;
    case Kind::kBusy:
      relieve_device(placement, rng, moves);
      break;
    case Kind::kSegment:
      move_segment(placement, rng, moves);
      break;
    case Kind::kMemory:
      relieve_memory(placement, rng, moves);
      break;
  }
  return !moves.empty() && links_exist(placement, moves);
}

DeviceId Neighbourhood::random_device(DeviceId other_than, Rng& rng) const {
  const auto device = static_cast<DeviceId>(rng.below(problem_.num_devices() - 1));
  return device < other_than ? device : DeviceId(device + 1);
}

void Neighbourhood::add_cluster(std::uint32_t cluster, DeviceId device, const Placement& placement,
                                std::vector<Move>& moves) const {
  for (const GroupId group : clusters_.groups[cluster]) {
    if (device_of(placement, group) != device && problem_.allowed(group, device)) {
      moves.push_back({group, device});
    }
  }
}

void Neighbourhood::move_across_border(const Placement& placement, Rng& rng, bool run,
                                       std::vector<Move>& moves) const {
  for (int i = 0; i < kTries; ++i) {
    const GroupId group = random_group(rng);
    const auto degree =
        static_cast<std::uint64_t>(graph_.offsets[group + 1] - graph_.offsets[group]);
    if (degree == 0) continue;
    const GroupId other =
        graph_.neighbours[graph_.offsets[group] + static_cast<std::int64_t>(rng.below(degree))];
    const DeviceId from = device_of(placement, group);
    const DeviceId to = device_of(placement, other);
    if (from == to) continue;
    add_group_cluster(group, to, placement, moves);
    if (!run) return;
    // What lies behind goes along, one neighbour after the other.
    GroupId at = group;
    for (std::uint64_t steps = 1 + rng.below(kLongestRun); steps > 0; --steps) {
      const auto edges = static_cast<std::uint64_t>(graph_.offsets[at + 1] - graph_.offsets[at]);
      if (edges == 0) return;
      const GroupId next =
          graph_.neighbours[graph_.offsets[at] + static_cast<std::int64_t>(rng.below(edges))];
      if (device_of(placement, next) != from) continue;
      add_group_cluster(next, to, placement, moves);
      at = next;
    }
    return;
  }
}

void Neighbourhood::swap_clusters(const Placement& placement, Rng& rng,
                                  std::vector<Move>& moves) const {
  const GroupId a = random_group(rng);
  for (int i = 0; i < kTries; ++i) {
    const GroupId b = random_group(rng);
    const DeviceId device_a = device_of(placement, a);
    const DeviceId device_b = device_of(placement, b);
    if (device_a == device_b) continue;
    add_group_cluster(a, device_b, placement, moves);
    add_group_cluster(b, device_a, placement, moves);
    return;
  }
}

void Neighbourhood::end_transfer(const Placement& placement, Rng& rng,
                                 std::vector<Move>& moves) const {
  const HotSpot* spot = random_spot(HotSpot::Kind::kTransfer, rng);
  if (spot == nullptr) return;
  const GroupId taker = problem_.group_of(spot->op);
  const GroupId maker = problem_.group_of(spot->other);
  if (rng.chance(0.5)) {
    add_group_cluster(taker, device_of(placement, maker), placement, moves);
  } else {
    add_group_cluster(maker, device_of(placement, taker), placement, moves);
  }
}

DeviceId Neighbourhood::device_for(GroupId group, const Placement& placement, Rng& rng) const {
  const DeviceId from = device_of(placement, group);
  const auto degree = static_cast<std::uint64_t>(graph_.offsets[group + 1] - graph_.offsets[group]);
  if (degree > 0 && rng.chance(0.5)) {
    const GroupId other =
        graph_.neighbours[graph_.offsets[group] + static_cast<std::int64_t>(rng.below(degree))];
    if (device_of(placement, other) != from) return device_of(placement, other);
  }
  return random_device(from, rng);
}

void Neighbourhood::relieve_device(const Placement& placement, Rng& rng,
                                   std::vector<Move>& moves) const {
  const HotSpot* spot = random_spot(HotSpot::Kind::kBusy, rng);
  if (spot == nullptr) return;
  const GroupId group = problem_.group_of(rng.chance(0.5) ? spot->op : spot->other);
  add_group_cluster(group, device_for(group, placement, rng), placement, moves);
}

void Neighbourhood::move_segment(const Placement& placement, Rng& rng,
                                 std::vector<Move>& moves) const {
  if (spots_.empty()) return;
  const std::size_t first = rng.below(spots_.size());
  const std::size_t last =
      std::min(spots_.size(), first + 1 + static_cast<std::size_t>(rng.below(kLongestSegment)));
  const GroupId lead = problem_.group_of(spots_[first].op);
  const DeviceId to = device_for(lead, placement, rng);
  std::uint32_t before = clusters_.size();
  for (std::size_t i = first; i < last; ++i) {
    const std::uint32_t cluster = clusters_.of_group[problem_.group_of(spots_[i].op)];
    if (cluster != before) add_cluster(cluster, to, placement, moves);
    before = cluster;
  }
}

void Neighbourhood::relieve_memory(const Placement& placement, Rng& rng,
                                   std::vector<Move>& moves) const {
  if (peaks_.empty()) return;
  // The device with the least room.
  DeviceId tightest = 0;
  const auto room = [&](DeviceId device) {
    return problem_.cluster().device(device).memory - peaks_[device];
  };
  for (DeviceId device = 1; device < problem_.num_devices(); ++device) {
    if (room(device) < room(tightest)) tightest = device;
  }
  for (int i = 0; i < kTries; ++i) {
    // Squared: the heavier, the likelier.
    const double drawn = rng.uniform();
    const auto at = static_cast<std::size_t>(drawn * drawn * static_cast<double>(heavy_.size()));
    const GroupId group = heavy_[at];
    if (device_of(placement, group) != tightest) continue;
    add_group_cluster(group, device_for(group, placement, rng), placement, moves);
    return;
  }
}

bool Neighbourhood::links_exist(const Placement& placement, std::span<const Move> moves) {
  if (all_linked_) return true;
  const Graph& graph = problem_.graph();
  if (device_after_.empty()) device_after_.assign(problem_.num_groups(), kNoDevice);
  for (const Move& move : moves) device_after_[move.group] = move.device;
  const auto device_after = [&](OpId op) {
    const DeviceId device = device_after_[problem_.group_of(op)];
    return device == kNoDevice ? placement[op] : device;
  };
  const auto linked = [&](OpId from, OpId to) {
    const DeviceId a = device_after(from);
    const DeviceId b = device_after(to);
    return a == b || problem_.cluster().link(a, b) != nullptr;
  };
  bool exist = true;
  for (const Move& move : moves) {
    for (const OpId op : problem_.group_ops(move.group)) {
      for (const TensorId tensor : graph.inputs(op)) {
        exist = exist && linked(graph.producer(tensor), op);
      }
      for (const TensorId tensor : graph.outputs(op)) {
        for (const OpId reader : graph.consumers(tensor)) exist = exist && linked(op, reader);
      }
    }
  }
  for (const Move& move : moves) device_after_[move.group] = kNoDevice;
  return exist;
}

}  // namespace emplace
