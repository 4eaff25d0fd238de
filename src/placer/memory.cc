#include "placer/memory.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/wide.h"

namespace emplace {
namespace {

constexpr int kMaxTries = 12;
constexpr double kSmallestShare = 0.05;

// What a group's ops may hold for a part of the step: the tensors they write, and scratch space.
std::vector<Bytes> passing_bytes(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<Bytes> bytes(problem.num_groups(), 0);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    Bytes& sum = bytes[problem.group_of(op)];
    sum += graph.temp_bytes(op);
    const OpRole role = graph.role(op);
    if (graph.is_view(op) || role == OpRole::kParameter || role == OpRole::kBuffer) continue;
    for (const TensorId tensor : graph.outputs(op)) sum += graph.memory_bytes(tensor);
  }
  return bytes;
}

// The device that may hold the most groups, lowest index first.
DeviceId most_allowed_device(const Problem& problem) {
  std::vector<std::int64_t> count(problem.num_devices(), 0);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    const auto allowed = problem.allowed_devices(group);
    if (allowed.size() == problem.num_devices()) continue;  // no reason to prefer any
    for (const DeviceId device : allowed) ++count[device];
  }
  return static_cast<DeviceId>(std::max_element(count.begin(), count.end()) - count.begin());
}

// Every group on `device` where it may go there, else on its first allowed device. Nothing when two
// of the devices that this takes are not linked.
std::optional<std::vector<DeviceId>> gather_on(const Problem& problem, DeviceId device) {
  std::vector<DeviceId> device_of_group(problem.num_groups(), device);
  std::vector<bool> used(problem.num_devices(), false);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (!problem.allowed(group, device)) {
      device_of_group[group] = problem.allowed_devices(group).front();
    }
    used[device_of_group[group]] = true;
  }
  for (DeviceId from = 0; from < problem.num_devices(); ++from) {
    for (DeviceId to = 0; to < problem.num_devices(); ++to) {
      const bool meet = from != to && used[from] && used[to];
      if (meet && problem.cluster().link(from, to) == nullptr) return std::nullopt;
    }
  }
  return device_of_group;
}

struct Tried {
  PlaceResult result;
  Evaluation evaluation;
  std::vector<Bytes> peaks;
};

// How many times its capacity the fullest device holds.
double worst_ratio(const Problem& problem, const std::vector<Bytes>& peaks) {
  double worst = 1;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    const Bytes capacity = std::max<Bytes>(problem.cluster().device(device).memory, 1);
    worst = std::max(worst, static_cast<double>(peaks[device]) / static_cast<double>(capacity));
  }
  return worst;
}

std::string shortage_note(const Problem& problem, const std::vector<Bytes>& peaks) {
  std::vector<std::string> parts;
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    const Device& device = problem.cluster().device(id);
    if (peaks[id] <= device.memory) continue;
    parts.push_back(fmt::format("{} needs {} of its {}", device.name, format_bytes(peaks[id]),
                                format_bytes(device.memory)));
  }
  return fmt::format("does not fit in memory: {}", fmt::join(parts, ", "));
}

}  // namespace

MemoryModel::MemoryModel(const Problem& problem, Evaluator& evaluator) {
  const std::vector<Bytes> passing = passing_bytes(problem);
  const DeviceId device = most_allowed_device(problem);
  // The share is part / whole, both over the groups on `device`.
  Wide part = 1;
  Wide whole = 1;
  if (const auto gathered = gather_on(problem, device)) {
    std::vector<Bytes> peaks;
    evaluator.evaluate(expand_groups(problem, *gathered), ReadyOrder(), peaks);
    Bytes resident_there = 0;
    Bytes passing_there = 0;
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      if ((*gathered)[group] != device) continue;
      resident_there += problem.group_resident_bytes(group);
      passing_there += passing[group];
    }
    if (passing_there > 0) {
      // Copies of what arrives from elsewhere may push the peak above what is written there.
      part = static_cast<Wide>(std::clamp<Bytes>(peaks[device] - resident_there, 0, passing_there));
      whole = static_cast<Wide>(passing_there);
    }
  }
  need_.resize(problem.num_groups());
  // Rounds the running total, not each group, so that the needs add up to the peak exactly.
  Bytes total = 0;
  Bytes rounded = 0;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    total += passing[group];
    const Bytes share_of_total = static_cast<Bytes>(static_cast<Wide>(total) * part / whole);
    need_[group] = problem.group_resident_bytes(group) + share_of_total - rounded;
    rounded = share_of_total;
  }
}

MemoryLedger::MemoryLedger(const Problem& problem, const MemoryModel& model, double capacity_share)
    : model_(&model), used_(problem.num_devices(), 0) {
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    const Bytes memory = problem.cluster().device(id).memory;
    // A double cannot hold every Bytes: a share of 1 must leave the capacity as it is.
    const bool whole = memory == kUnlimited || capacity_share >= 1;
    capacity_.push_back(whole ? memory
                              : static_cast<Bytes>(static_cast<double>(memory) * capacity_share));
  }
}

DeviceId MemoryLedger::roomiest(const Problem& problem, GroupId group) const {
  const auto allowed = problem.allowed_devices(group);
  EMPLACE_CHECK(!allowed.empty());
  DeviceId best = allowed.front();
  for (const DeviceId device : allowed) {
    if (left(device) > left(best)) best = device;
  }
  return best;
}

void note_shortage(const Problem& problem, Evaluator& evaluator, PlaceResult& result) {
  check_placement(problem, result.placement);
  std::vector<Bytes> peaks;
  const Evaluation evaluation =
      evaluator.evaluate(result.placement, ReadyOrder(problem, result.schedule), peaks);
  if (!evaluation.fits()) result.notes.push_back(shortage_note(problem, peaks));
}

PlaceResult fit_memory(const Problem& problem, Evaluator& evaluator, const Budget& budget,
                       const std::function<PlaceResult(MemoryLedger&)>& construct) {
  const MemoryModel model(problem, evaluator);
  std::optional<Tried> best;
  double share = 1;
  for (int tries = 0; tries < kMaxTries && share >= kSmallestShare; ++tries) {
    if (best && budget.spent(evaluator.evaluations())) break;
    MemoryLedger ledger(problem, model, share);
    Tried tried{.result = construct(ledger), .evaluation = {}, .peaks = {}};
    check_placement(problem, tried.result.placement);
    tried.evaluation = evaluator.evaluate(tried.result.placement,
                                          ReadyOrder(problem, tried.result.schedule), tried.peaks);
    if (tried.evaluation.fits()) return std::move(tried.result);
    // Where the estimate was short by some factor, that factor less is offered; the bounds keep the
    // steps from crawling and from passing over what would fit.
    share *= std::clamp(1 / worst_ratio(problem, tried.peaks), 0.7, 0.95);
    if (!best || tried.evaluation < best->evaluation) best = std::move(tried);
  }
  best->result.notes.push_back(shortage_note(problem, best->peaks));
  return std::move(best->result);
}

}  // namespace emplace
