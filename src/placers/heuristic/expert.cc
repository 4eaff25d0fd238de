// The human expert of Mirhoseini et al., "Device placement optimization with reinforcement
// learning" (2017), and of the papers after it: contiguous blocks of layers, and for recurrent
// networks one layer per device, the embedding with the first, attention and softmax with the last.
//
// The papers' experts were people, so this is a reconstruction of what they did by rule:
//  * Modules (graph/modules.h) are listed in forward order, the backward pass and the update of a
//    module with its forward pass. A colocation group belongs to the module of its longest op.
//  * The list is cut into contiguous blocks, one per device in the order of the cluster, so that
//    the largest block's time over its device's speed is the least possible with every block within
//    its device's memory. Devices slower than a quarter of the fastest are used only when memory
//    demands it; when no cut fits at all, the blocks are balanced by memory instead.
//  * A recurrent network's units are its layers, found by the names of the modules
//    (find_recurrent_layers), encoder and decoder layers of one index together, as people place
//    GNMT. With as many devices as layers each has a device of its own, the fastest ones where
//    there are more devices; with fewer they are cut into balanced blocks as above. Where that does
//    not fit, its modules are cut.
//  * A group that may not use its block's device goes to the fastest with room that it may use.
//
// Cutting the list is exact for its own measure: the least limit within which greedy blocks take
// all modules. Nothing is said of the step. O(modules) for each of 60 halvings.
#include <algorithm>
#include <numeric>
#include <optional>

#include "graph/modules.h"

#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"

#include "placers/common/blocks.h"
#include "placers/common/choices.h"

namespace emplace {
namespace {

constexpr double kMuchSlower = 4;

// What every try starts from.
struct Plan {
  std::vector<DeviceId> devices;      // that may be used, ascending
  std::vector<double> totals;         // by device of the cluster, all ops' time
  std::vector<std::uint32_t> module;  // by group
  std::uint32_t num_modules = 0;
  RecurrentLayers layers;

  std::vector<DeviceId> fast_devices() const {
    double fastest = totals[devices.front()];
    for (const DeviceId device : devices) fastest = std::min(fastest, totals[device]);
    std::vector<DeviceId> result;
    std::copy_if(devices.begin(), devices.end(), std::back_inserter(result),
                 [&](DeviceId device) { return totals[device] <= kMuchSlower * fastest; });
    return result;
  }
};

using DeviceOfUnit = std::vector<DeviceId>;

class Expert final : public Placer {
 public:
  struct Options {
    bool recurrent = true;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.flag("recurrent", &Options::recurrent,
                                        "Give the layers of recurrent networks a device each.");
  }
  explicit Expert(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Plan prepare(const Problem& problem) const;

  Options options_;
};

Plan Expert::prepare(const Problem& problem) const {
  Plan plan;
  plan.devices = mutually_linked_devices(problem);
  plan.totals = total_durations(problem);
  const Modules modules = infer_modules(problem.graph());
  plan.num_modules = modules.size();
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    OpId longest = problem.group_ops(group).front();
    for (const OpId op : problem.group_ops(group)) {
      if (problem.mean_duration(op) > problem.mean_duration(longest)) longest = op;
    }
    plan.module.push_back(modules.of_op[longest]);
  }
  if (options_.recurrent) plan.layers = find_recurrent_layers(problem.graph(), modules);
  return plan;
}

std::vector<BlockUnit> measure(const Problem& problem, const MemoryLedger& ledger,
                               const std::vector<std::uint32_t>& unit_of_group,
                               std::uint32_t num_units) {
  std::vector<BlockUnit> units(num_units);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    units[unit_of_group[group]].work += group_mean_duration(problem, group);
    units[unit_of_group[group]].memory += ledger.need(group);
  }
  return units;
}

std::optional<DeviceOfUnit> cut(const Plan& plan, const MemoryLedger& ledger,
                                const std::vector<BlockUnit>& units,
                                const std::vector<DeviceId>& devices) {
  std::vector<BlockDevice> block_devices;
  for (const DeviceId device : devices) {
    block_devices.push_back(
        {.speed = 1 / plan.totals[device], .capacity = ledger.capacity(device)});
  }
  const auto blocks = cut_into_blocks(units, block_devices);
  if (!blocks) return std::nullopt;
  DeviceOfUnit result;
  for (const std::uint32_t block : *blocks) result.push_back(devices[block]);
  return result;
}

// Blocks in proportion to the devices' memory, as a last resort.
DeviceOfUnit cut_by_memory(const Plan& plan, const MemoryLedger& ledger,
                           std::vector<BlockUnit> units) {
  std::vector<BlockDevice> block_devices;
  for (const DeviceId device : plan.devices) {
    block_devices.push_back({.speed = std::max(1.0, static_cast<double>(ledger.capacity(device)))});
  }
  for (BlockUnit& unit : units) unit = {.work = unit.memory, .memory = 0};
  const auto blocks = cut_into_blocks(units, block_devices);
  EMPLACE_CHECK(blocks.has_value());
  DeviceOfUnit result;
  for (const std::uint32_t block : *blocks) result.push_back(plan.devices[block]);
  return result;
}

// Nothing where the layers do not fit.
std::optional<DeviceOfUnit> spread_layers(const Plan& plan, const MemoryLedger& ledger,
                                          const std::vector<BlockUnit>& layers) {
  std::vector<DeviceId> devices = plan.devices;
  if (layers.size() > plan.devices.size()) {
    if (auto blocks = cut(plan, ledger, layers, plan.fast_devices())) return blocks;
    return cut(plan, ledger, layers, plan.devices);
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [&](DeviceId a, DeviceId b) { return plan.totals[a] < plan.totals[b]; });
  devices.resize(layers.size());
  std::sort(devices.begin(), devices.end());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].memory > ledger.capacity(devices[i])) return std::nullopt;
  }
  return devices;
}

// Each group on its unit's device, or, where it may not go there, on the fastest with room.
std::vector<DeviceId> assign_groups(const Problem& problem, const DeviceChoices& choices,
                                    MemoryLedger& ledger,
                                    const std::vector<std::uint32_t>& unit_of_group,
                                    const DeviceOfUnit& device_of_unit) {
  std::vector<DeviceId> device_of_group(problem.num_groups(), kNoDevice);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    const DeviceId device = device_of_unit[unit_of_group[group]];
    if (!problem.allowed(group, device)) continue;
    device_of_group[group] = device;
    ledger.add(group, device);
  }
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (device_of_group[group] != kNoDevice) continue;
    const std::vector<DeviceId> legal = devices_with_room(ledger, group, choices.of(group));
    device_of_group[group] = fastest_for(problem, group, legal);
    ledger.add(group, device_of_group[group]);
  }
  return device_of_group;
}

std::vector<DeviceId> construct(const Problem& problem, const Plan& plan,
                                const DeviceChoices& choices, MemoryLedger& ledger) {
  if (plan.layers.count > 0) {
    std::vector<std::uint32_t> layer_of_group;
    for (const std::uint32_t module : plan.module) {
      layer_of_group.push_back(plan.layers.of_module[module]);
    }
    const auto layers = measure(problem, ledger, layer_of_group, plan.layers.count);
    if (const auto spread = spread_layers(plan, ledger, layers)) {
      return assign_groups(problem, choices, ledger, layer_of_group, *spread);
    }
  }
  const auto modules = measure(problem, ledger, plan.module, plan.num_modules);
  auto blocks = cut(plan, ledger, modules, plan.fast_devices());
  if (!blocks) blocks = cut(plan, ledger, modules, plan.devices);
  if (!blocks) blocks = cut_by_memory(plan, ledger, modules);
  return assign_groups(problem, choices, ledger, plan.module, *blocks);
}

PlaceResult Expert::place(PlaceContext& context, const Budget& budget, Rng) {
  const Problem& problem = context.problem();
  const Plan plan = prepare(problem);
  const DeviceChoices choices(problem, plan.devices);
  return fit_memory(problem, context.evaluator(), budget, [&](MemoryLedger& ledger) {
    return PlaceResult{.placement =
                           expand_groups(problem, construct(problem, plan, choices, ledger))};
  });
}

}  // namespace

EMPLACE_PLACER(expert, Expert, .family = "heuristic",
               .summary = "Contiguous blocks of layers; a device for each recurrent layer.",
               .reference = "Mirhoseini et al. 2017")

}  // namespace emplace
