#include "io/layer_flags.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"

#include "graph/layers.h"

#include "io/module_devices.h"

namespace emplace {
namespace {

// The one row of numbered layers that a decoder has, and where it lies.
struct PlacedLayers {
  std::string stem;                     // "model.layers"
  std::vector<DeviceId> devices;        // by layer
  std::optional<DeviceId> before = {};  // of what precedes them: embeddings
  std::optional<DeviceId> after = {};   // of what follows them: the head
};

std::optional<int> layer_number(const std::string& layer, std::string& stem) {
  const std::size_t dot = layer.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  int number = 0;
  const char* end = layer.data() + layer.size();
  const auto [stop, error] = std::from_chars(layer.data() + dot + 1, end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  stem = layer.substr(0, dot);
  return number;
}

class LayerFinder {
 public:
  LayerFinder(const Problem& problem, const Placement& placement)
      : graph_(problem.graph()), cluster_(problem.cluster()), placement_(placement) {}

  PlacedLayers find() && {
    const Modules modules = infer_modules(graph_);
    const std::vector<std::string> layers = layers_of_modules(modules);
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.phase(op) != Phase::kForward || graph_.is_view(op)) continue;
      const OpRole role = graph_.role(op);
      if (role == OpRole::kInput || role == OpRole::kConstant) continue;
      std::string stem;
      const auto number = layer_number(layers[modules.of_op[op]], stem);
      if (!number) {
        note_other(op);
        continue;
      }
      if (found_.stem.empty()) found_.stem = stem;
      if (stem != found_.stem) {
        fail_input("has layers '{}.N' and '{}.N'; expected one row of numbered layers", found_.stem,
                   stem);
      }
      note_layer(op, *number);
    }
    if (of_layer_.empty()) fail_input("has no numbered layers");
    for (const auto& [number, op] : of_layer_) {
      if (number != static_cast<int>(found_.devices.size())) {
        fail_input("layer '{}.{}' is missing; expected layers that count up from 0", found_.stem,
                   found_.devices.size());
      }
      found_.devices.push_back(placement_[op]);
    }
    for (const OpId op : others_) {
      (op < last_ ? found_.before : found_.after) = placement_[op];
    }
    return std::move(found_);
  }

 private:
  void note_other(OpId op) {
    if (!graph_.is_source(op)) others_.push_back(op);
  }

  void note_layer(OpId op, int number) {
    const auto [first, added] = of_layer_.try_emplace(number, op);
    last_ = std::max(last_, op);
    if (!added && placement_[first->second] != placement_[op]) {
      fail_input(
          "layer '{}.{}' is divided: op '{}' is on {}, op '{}' on {}; expected layers that "
          "are kept whole",
          found_.stem, number, graph_.op_name(first->second), name(first->second),
          graph_.op_name(op), name(op));
    }
  }

  const std::string& name(OpId op) const { return cluster_.device(placement_[op]).name; }

  const Graph& graph_;
  const Cluster& cluster_;
  const Placement& placement_;
  std::map<int, OpId> of_layer_;
  std::vector<OpId> others_;
  OpId last_ = 0;
  PlacedLayers found_;
};

PlacedLayers placed_layers(const Problem& problem, const Placement& placement) {
  return LayerFinder(problem, placement).find();
}

// Layers in runs of one device.
struct LayerRun {
  DeviceId device = 0;
  int layers = 0;
};
std::vector<LayerRun> runs_of_layers(const PlacedLayers& layers) {
  std::vector<LayerRun> runs;
  for (const DeviceId device : layers.devices) {
    if (runs.empty() || runs.back().device != device) runs.push_back({device, 0});
    ++runs.back().layers;
  }
  return runs;
}

std::string buffer_name(const Cluster& cluster, DeviceId device) {
  const int number = accelerator_number(cluster, device);
  return number < 0 ? "CPU" : fmt::format("CUDA{}", number);
}

std::string overrides(const Cluster& cluster, const PlacedLayers& layers) {
  std::map<std::string, std::vector<int>> by_device;
  for (std::size_t i = 0; i < layers.devices.size(); ++i) {
    by_device[buffer_name(cluster, layers.devices[i])].push_back(static_cast<int>(i));
  }
  std::vector<std::string> rules;
  for (const auto& [name, numbers] : by_device) {
    rules.push_back(fmt::format("blk\\.({})\\.={}", fmt::join(numbers, "|"), name));
  }
  if (layers.after) {
    rules.push_back(fmt::format("output\\.weight={}", buffer_name(cluster, *layers.after)));
  }
  return fmt::format("--n-gpu-layers 999 --override-tensor '{}'\n", fmt::join(rules, ","));
}

// Where `--tensor-split` puts them: the first layers on a CPU, then a run on each GPU, in any
// order. The head counts as a layer. Nothing where they lie otherwise.
std::optional<std::string> tensor_split(const Cluster& cluster, const PlacedLayers& layers) {
  std::vector<DeviceId> row = layers.devices;
  row.push_back(layers.after.value_or(row.back()));
  const auto first = std::find_if(row.begin(), row.end(),
                                  [&](DeviceId device) { return !cluster.is_cpu(device); });
  const auto on_gpus = row.end() - first;
  if (on_gpus == 0) return "--n-gpu-layers 0\n";
  std::vector<int> gpus;
  std::vector<int> share;
  for (auto it = first; it != row.end(); ++it) {
    const int gpu = accelerator_number(cluster, *it);
    if (gpu < 0) return std::nullopt;
    if (gpus.empty() || gpus.back() != gpu) {
      if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) return std::nullopt;
      gpus.push_back(gpu);
      share.push_back(0);
    }
    ++share.back();
  }
  std::string flags =
      fmt::format("--n-gpu-layers {} --split-mode layer", first == row.begin() ? 999 : on_gpus);
  if (std::is_sorted(gpus.begin(), gpus.end())) {
    std::vector<int> by_gpu;
    for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
      const int gpu = accelerator_number(cluster, device);
      if (gpu < 0) continue;
      const auto at = std::find(gpus.begin(), gpus.end(), gpu);
      by_gpu.push_back(at == gpus.end() ? 0 : share[static_cast<std::size_t>(at - gpus.begin())]);
    }
    share = by_gpu;
  } else {
    flags += fmt::format(" --device CUDA{}", fmt::join(gpus, ",CUDA"));
  }
  return fmt::format("{} --tensor-split {}\n", flags, fmt::join(share, ","));
}

}  // namespace

std::string write_llama_cpp_flags(const Problem& problem, const Placement& placement,
                                  const ExportNote& note) {
  const Cluster& cluster = problem.cluster();
  const PlacedLayers layers = placed_layers(problem, placement);
  if (auto flags = tensor_split(cluster, layers)) {
    note("llama.cpp keeps token embeddings on the CPU, and a layer's cache where the layer is");
    return *std::move(flags);
  }
  note(
      "--override-tensor moves weights alone: caches are where llama.cpp's own split of the layers "
      "has them, and token embeddings on the CPU");
  return overrides(cluster, layers);
}

std::string write_megatron_flags(const Problem& problem, const Placement& placement,
                                 const ExportNote& note) {
  const Cluster& cluster = problem.cluster();
  const PlacedLayers layers = placed_layers(problem, placement);
  const std::vector<LayerRun> runs = runs_of_layers(layers);
  std::set<DeviceId> seen;
  for (const LayerRun& run : runs) {
    const std::string& name = cluster.device(run.device).name;
    if (cluster.is_cpu(run.device)) fail_input("layers are on {}; Megatron's are on GPUs", name);
    if (!seen.insert(run.device).second) {
      fail_input("{} has layers that do not follow each other; Megatron's stages are runs of them",
                 name);
    }
  }
  if (runs.size() < 2) fail_input("all layers are on one device: there is no pipeline");
  // Embeddings and head may be stages of their own.
  const auto apart = [&](const std::optional<DeviceId>& device, const LayerRun& next) {
    if (!device || *device == next.device) return false;
    if (!cluster.is_cpu(*device) && seen.insert(*device).second) return true;
    note(
        "Megatron keeps embeddings and head with the first and the last layer, or as stages of "
        "their own, wherever they were placed");
    return false;
  };
  const bool first_apart = apart(layers.before, runs.front());
  const bool last_apart = apart(layers.after, runs.back());
  note("the stages are GPUs in the order of the layers; Megatron numbers its ranks itself");
  std::vector<std::string> stages;
  for (const LayerRun& run : runs) stages.push_back(fmt::format("t*{}", run.layers));
  const bool even = std::all_of(runs.begin(), runs.end(), [&](const LayerRun& run) {
    return run.layers == runs.front().layers;
  });
  if (even && !first_apart && !last_apart) {
    return fmt::format("--pipeline-model-parallel-size {}\n", runs.size());
  }
  stages.front() = (first_apart ? "E|" : "E") + stages.front();
  stages.back() += last_apart ? "|L" : "L";
  return fmt::format("--pipeline-model-parallel-size {} --pipeline-model-parallel-layout '{}'\n",
                     runs.size() + (first_apart ? 1 : 0) + (last_apart ? 1 : 0),
                     fmt::join(stages, "|"));
}

}  // namespace emplace
