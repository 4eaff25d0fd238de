#include "sim/memory_over_time.h"

#include <algorithm>
#include <numeric>

namespace emplace {
namespace {

struct PlacedHolder {
  DeviceId device = 0;
  MemoryHolder holder;
};

// Of one step. What stays is there from the first one on, until `last`.
class HolderCollector {
 public:
  HolderCollector(const Problem& problem, const Placement& placement, const Timeline& timeline,
                  std::uint32_t step, Nanoseconds last)
      : problem_(problem),
        graph_(problem.graph()),
        placement_(placement),
        timeline_(timeline),
        step_(step),
        last_(last),
        until_(graph_.num_tensors(), 0) {}

  std::vector<PlacedHolder> collect() {
    find_roots();
    find_ends();
    for (OpId op = 0; op < graph_.num_ops(); ++op) add_op(op);
    for (const Transfer& transfer : timeline_.transfers) add_copy(transfer);
    return std::move(found_);
  }

 private:
  // The tensor that a view's output is part of; ops are in topological order.
  void find_roots() {
    root_.resize(graph_.num_tensors());
    std::iota(root_.begin(), root_.end(), TensorId{0});
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (!graph_.is_view(op) || graph_.inputs(op).empty()) continue;
      for (const TensorId tensor : graph_.outputs(op)) root_[tensor] = root_[graph_.inputs(op)[0]];
    }
  }

  void use(TensorId tensor, Nanoseconds time) {
    Nanoseconds& until = until_[root_[tensor]];
    until = std::max(until, time);
  }

  void find_ends() {
    for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
      const OpId producer = graph_.producer(tensor);
      use(tensor, timeline_.ops[producer].finish);
      for (const OpId reader : graph_.consumers(tensor)) {
        if (placement_[reader] != placement_[producer]) continue;
        const TensorId over = problem_.overwritten(reader);
        const bool taken = over != kNotOverwritten && root_[over] == root_[tensor];
        use(tensor, taken ? timeline_.ops[reader].start : timeline_.ops[reader].finish);
      }
    }
    for (const Transfer& transfer : timeline_.transfers) use(transfer.tensor, transfer.finish);
  }

  MemoryUse use_of_resident(OpId op) const {
    if (graph_.phase(op) == Phase::kUpdate) return MemoryUse::kState;
    if (graph_.role(op) != OpRole::kBuffer) return MemoryUse::kWeights;
    for (const TensorId tensor : graph_.outputs(op)) {
      for (const OpId reader : graph_.consumers(tensor)) {
        if (graph_.phase(reader) == Phase::kUpdate) return MemoryUse::kState;
      }
    }
    return MemoryUse::kWeights;
  }

  void add_op(OpId op) {
    const OpSpan& span = timeline_.ops[op];
    if (const Bytes resident = problem_.resident_bytes(op); resident > 0 && step_ == 0) {
      add(op, placement_[op], use_of_resident(op), resident, 0, last_);
    }
    add(op, placement_[op], MemoryUse::kScratch, graph_.temp_bytes(op), span.start, span.finish);
    const OpRole role = graph_.role(op);
    if (role == OpRole::kParameter || role == OpRole::kBuffer || graph_.is_view(op)) return;
    const MemoryUse use =
        graph_.phase(op) == Phase::kForward ? MemoryUse::kActivations : MemoryUse::kGradients;
    for (const TensorId tensor : graph_.outputs(op)) {
      add(op, placement_[op], use, graph_.memory_bytes(tensor), span.start, until_[tensor]);
    }
  }

  void add_copy(const Transfer& transfer) {
    Nanoseconds end = transfer.start;
    for (const OpId reader : graph_.consumers(transfer.tensor)) {
      if (placement_[reader] != transfer.to) continue;
      const bool taken = problem_.overwritten(reader) == transfer.tensor;
      end = std::max(end, taken ? timeline_.ops[reader].start : timeline_.ops[reader].finish);
    }
    add(graph_.producer(transfer.tensor), transfer.to, MemoryUse::kReceived,
        graph_.memory_bytes(transfer.tensor), transfer.start, end);
  }

  void add(OpId op, DeviceId device, MemoryUse use, Bytes bytes, Nanoseconds begin,
           Nanoseconds end) {
    const bool stays = use == MemoryUse::kWeights || use == MemoryUse::kState;
    if (bytes == 0 || (end <= begin && !stays)) return;
    found_.push_back({device, {op, use, bytes, begin, end, step_}});
  }

  const Problem& problem_;
  const Graph& graph_;
  const Placement& placement_;
  const Timeline& timeline_;
  std::uint32_t step_;
  Nanoseconds last_;
  std::vector<TensorId> root_;      // by tensor
  std::vector<Nanoseconds> until_;  // by tensor that is a root: where it was made
  std::vector<PlacedHolder> found_;
};

struct Change {
  Nanoseconds time = 0;
  MemoryUse use = MemoryUse::kWeights;
  Bytes bytes = 0;  // less than 0: released
};

// What counts is the sum after all that happens at one moment.
void fill_moments(std::vector<Change> changes, DeviceMemory& device) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.time < b.time; });
  device.moments.push_back({});
  for (const Change& change : changes) {
    if (change.time != device.moments.back().time) {
      MemoryMoment next = device.moments.back();
      next.time = change.time;
      device.moments.push_back(next);
    }
    device.moments.back().held[static_cast<std::size_t>(change.use)] += change.bytes;
  }
  device.peak = *std::max_element(
      device.moments.begin(), device.moments.end(),
      [](const MemoryMoment& a, const MemoryMoment& b) { return sum_of(a.held) < sum_of(b.held); });
}

}  // namespace

std::string_view memory_use_name(MemoryUse use) {
  constexpr std::array<std::string_view, kMemoryUses> kNames{
      "weights", "optimizer state", "activations", "gradients", "received", "scratch"};
  return kNames[static_cast<std::size_t>(use)];
}

Bytes sum_of(const MemoryByUse& held) {
  return std::accumulate(held.begin(), held.end(), Bytes{0});
}

std::vector<DeviceMemory> memory_over_time(const Problem& problem, const Placement& placement,
                                           const Timeline& timeline, std::size_t most_holders) {
  return memory_over_stream(problem, placement, std::span(&timeline, 1), timeline.step,
                            most_holders);
}

std::vector<DeviceMemory> memory_over_stream(const Problem& problem, const Placement& placement,
                                             std::span<const Timeline> steps, Nanoseconds last,
                                             std::size_t most_holders) {
  std::vector<PlacedHolder> holders;
  for (std::uint32_t step = 0; step < steps.size(); ++step) {
    const auto more = HolderCollector(problem, placement, steps[step], step, last).collect();
    holders.insert(holders.end(), more.begin(), more.end());
  }
  std::vector<std::vector<Change>> changes(problem.num_devices());
  for (const auto& [device, holder] : holders) {
    if (holder.begin > last) continue;
    changes[device].push_back({holder.begin, holder.use, holder.bytes});
    const bool stays = holder.use == MemoryUse::kWeights || holder.use == MemoryUse::kState;
    if (!stays && holder.end <= last) {
      changes[device].push_back({holder.end, holder.use, -holder.bytes});
    }
  }
  std::vector<DeviceMemory> devices(problem.num_devices());
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    fill_moments(std::move(changes[id]), devices[id]);
  }
  for (const auto& [device, holder] : holders) {
    const Nanoseconds peak = devices[device].peak.time;
    const bool stays = holder.use == MemoryUse::kWeights || holder.use == MemoryUse::kState;
    if (stays || (holder.begin <= peak && peak < holder.end)) {
      devices[device].largest.push_back(holder);
    }
  }
  for (DeviceMemory& device : devices) {
    std::stable_sort(
        device.largest.begin(), device.largest.end(),
        [](const MemoryHolder& a, const MemoryHolder& b) { return a.bytes > b.bytes; });
    device.largest.resize(std::min(most_holders, device.largest.size()));
  }
  return devices;
}

std::vector<MemoryMoment> thinned(const std::vector<MemoryMoment>& moments, Nanoseconds end,
                                  std::size_t parts) {
  std::vector<MemoryMoment> kept;
  std::size_t part_of_last = parts;
  for (const MemoryMoment& moment : moments) {
    const auto part = static_cast<std::size_t>(end <= 0 ? 0
                                                        : static_cast<double>(moment.time) /
                                                              static_cast<double>(end) *
                                                              static_cast<double>(parts));
    if (part != part_of_last || kept.empty()) {
      kept.push_back(moment);
      part_of_last = part;
    } else if (sum_of(moment.held) > sum_of(kept.back().held)) {
      kept.back() = moment;
    }
  }
  return kept;
}

}  // namespace emplace
