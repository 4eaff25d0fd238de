// Says what each device has, layer by layer (graph/layers.h) in the order of the forward pass.
// Neighbours that count on, as layer.3 to layer.7, and are all whole or all in part become a range;
// where that leaves too many to read, so do other neighbours that are whole. A description by
// thresholds, not a search. O(ops + devices * layers).
#include "sim/device_contents.h"

#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "graph/layers.h"

namespace emplace {
namespace {

// The layers of the model, numbered as the forward pass meets them.
struct LayerTable {
  std::vector<std::string> names;
  std::vector<std::uint32_t> of_module;
};

LayerTable list_layers(const Modules& modules) {
  LayerTable layers;
  std::map<std::string, std::uint32_t> numbers;
  for (const std::string& name : layers_of_modules(modules)) {
    const auto next = static_cast<std::uint32_t>(layers.names.size());
    const auto [entry, added] = numbers.try_emplace(name, next);
    if (added) layers.names.push_back(name);
    layers.of_module.push_back(entry->second);
  }
  return layers;
}

struct LayerLoad {
  double weight = 0;
  Bytes resident = 0;
  bool any = false;

  void add(double more, Bytes more_resident) {
    weight += more;
    resident += more_resident;
    any = true;
  }
};

// "layer.11" as "layer." and 11.
std::optional<std::pair<std::string_view, std::uint64_t>> numbered(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::size_t digits = last == std::string_view::npos ? 0 : last + 1;
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(name.data() + digits, name.data() + name.size(), number);
  if (error != std::errc() || digits == name.size()) return std::nullopt;
  return std::pair(name.substr(0, digits), number);
}

bool counts_on(std::string_view name, std::string_view next) {
  const auto a = numbered(name);
  const auto b = numbered(next);
  return a && b && a->first == b->first && a->second + 1 == b->second;
}

// A range, and what its share is of.
struct Range {
  HeldModules held;
  std::uint32_t last_layer = 0;
  double weight = 0;  // of all of it, here and elsewhere

  void extend(const Range& next) {
    held.last = next.held.last;
    held.count += next.held.count;
    held.work += next.held.work;
    last_layer = next.last_layer;
    weight += next.weight;
    held.share = held.whole() ? std::min(held.share, next.held.share) : held.work / weight;
  }
};

std::vector<Range> ranges_on_device(const LayerTable& layers, const std::vector<LayerLoad>& all,
                                    const std::vector<LayerLoad>& here) {
  std::vector<Range> ranges;
  for (std::uint32_t layer = 0; layer < layers.names.size(); ++layer) {
    if (!here[layer].any) continue;
    const std::string& name = layers.names[layer];
    double share = here[layer].weight / all[layer].weight;
    const bool resident_too = static_cast<double>(here[layer].resident) >=
                              HeldModules::kWhole * static_cast<double>(all[layer].resident);
    if (!resident_too) share = std::min(share, HeldModules::kNearlyWhole);
    Range own{{name, name, 1, share, here[layer].weight}, layer, all[layer].weight};
    if (!ranges.empty() && ranges.back().held.whole() == own.held.whole() &&
        counts_on(ranges.back().held.last, name)) {
      ranges.back().extend(own);
    } else {
      ranges.push_back(std::move(own));
    }
  }
  return ranges;
}

// Whole neighbours as one, where there are many ranges.
std::vector<Range> shortened(std::vector<Range> ranges) {
  constexpr std::size_t kMany = 8;
  if (ranges.size() <= kMany) return ranges;
  std::vector<Range> shorter;
  for (Range& range : ranges) {
    if (!shorter.empty() && range.held.whole() && shorter.back().held.whole() &&
        shorter.back().last_layer + 1 == range.last_layer + 1 - range.held.count) {
      shorter.back().extend(range);
    } else {
      shorter.push_back(std::move(range));
    }
  }
  return shorter;
}

}  // namespace

std::vector<DeviceContents> device_contents(const Problem& problem, const Placement& placement,
                                            const Modules& modules) {
  // Ops of no length count a little, so that modules of nothing else are not lost.
  const auto weight = [&](OpId op) { return static_cast<double>(problem.mean_duration(op)) + 1; };
  const LayerTable layers = list_layers(modules);
  std::vector<LayerLoad> all(layers.names.size());
  std::vector<std::vector<OpId>> ops(problem.num_devices());
  double total = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    ops[placement[op]].push_back(op);
    all[layers.of_module[modules.of_op[op]]].add(weight(op), problem.resident_bytes(op));
    total += static_cast<double>(problem.mean_duration(op));
  }
  std::vector<DeviceContents> contents(problem.num_devices());
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    DeviceContents& own = contents[device];
    std::vector<LayerLoad> here(layers.names.size());
    double weight_here = 0;
    for (const OpId op : ops[device]) {
      here[layers.of_module[modules.of_op[op]]].add(weight(op), problem.resident_bytes(op));
      weight_here += weight(op);
      own.resident += problem.resident_bytes(op);
      own.work += static_cast<double>(problem.mean_duration(op));
    }
    own.work = total > 0 ? own.work / total : 0;
    for (Range& range : shortened(ranges_on_device(layers, all, here))) {
      range.held.work /= weight_here;
      own.modules.push_back(std::move(range.held));
    }
  }
  return contents;
}

}  // namespace emplace
