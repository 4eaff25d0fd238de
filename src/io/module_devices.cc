#include "io/module_devices.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"

#include "graph/module_tree.h"

namespace emplace {
namespace {

class ModuleCover {
 public:
  ModuleCover(const Problem& problem, const Placement& placement, SharedWeights shared)
      : graph_(problem.graph()),
        cluster_(problem.cluster()),
        placement_(placement),
        shared_(shared),
        modules_(infer_modules(graph_)),
        tree_(graph_, modules_),
        whole_(tree_.size()),
        is_free_(graph_.num_ops(), false),
        result_{.entries = {}, .of_op = placement, .moved = {}, .made_one = {}} {}

  ModuleDevices cover() && {
    if (!modules_.named) fail_input("nothing says which modules the model's ops are of");
    find_whole();
    run_forward();
    check_shared_weights();
    add_entries(ModuleTree::kRoot);
    std::stable_sort(result_.entries.begin(), result_.entries.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return std::move(result_);
  }

 private:
  using Entry = ModuleDevices::Entry;

  // What has a place of its own: neither inputs and constants, which go where they are read, nor
  // views.
  bool counts(OpId op) const {
    const OpRole role = graph_.role(op);
    return graph_.phase(op) == Phase::kForward && !graph_.is_view(op) &&
           (role == OpRole::kCompute || role == OpRole::kParameter || role == OpRole::kBuffer);
  }

  // The one device of a module and all that is inside it; nothing where there are several.
  void find_whole() {
    std::vector<std::set<DeviceId>> devices(tree_.size());
    for (std::uint32_t node = tree_.size(); node-- > 0;) {
      for (const OpId op : tree_.node(node).ops) {
        if (counts(op)) devices[node].insert(placement_[op]);
      }
      if (devices[node].size() == 1) whole_[node] = *devices[node].begin();
      if (node != ModuleTree::kRoot) {
        devices[tree_.node(node).parent].insert(devices[node].begin(), devices[node].end());
      }
    }
  }

  // The device of the outermost module around the op that has one.
  std::optional<DeviceId> given(OpId op) const {
    std::optional<DeviceId> device;
    for (std::uint32_t node = tree_.of_op(op);; node = tree_.node(node).parent) {
      if (whole_[node]) device = whole_[node];
      if (node == ModuleTree::kRoot) return device;
    }
  }

  // An op of a divided module runs where its inputs are.
  void run_forward() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.phase(op) != Phase::kForward) continue;
      const OpRole role = graph_.role(op);
      is_free_[op] = role == OpRole::kInput || role == OpRole::kConstant;
      if (const auto device = given(op)) {
        result_.of_op[op] = *device;
        continue;
      }
      if (graph_.is_source(op)) continue;
      std::optional<OpId> from;
      for (const TensorId tensor : graph_.inputs(op)) {
        const OpId producer = graph_.producer(tensor);
        if (is_free_[producer]) continue;
        if (from && result_.of_op[*from] != result_.of_op[producer]) {
          refuse(op, *from, producer);
        }
        if (!from) from = producer;
      }
      if (from) result_.of_op[op] = result_.of_op[*from];
      is_free_[op] = !from;
      if (result_.of_op[op] != placement_[op] && counts(op)) result_.moved.push_back(op);
    }
  }

  [[noreturn]] void refuse(OpId op, OpId a, OpId b) const {
    const std::string& path = tree_.node(tree_.of_op(op)).path;
    fail_input(
        "{} cannot be on several devices: its op '{}' reads '{}' from {} and '{}' from {}; "
        "expected "
        "one device, as where modules or layers are kept whole",
        path.empty() ? "the model" : fmt::format("module '{}'", path), graph_.op_name(op),
        graph_.op_name(a), name(result_.of_op[a]), graph_.op_name(b), name(result_.of_op[b]));
  }

  const std::string& name(DeviceId device) const { return cluster_.device(device).name; }

  // What is of no module, or of none but itself, as masks and tables of positions that an exporter
  // computed, comes to the modules that read it as an argument, which runtimes bring to them.
  bool is_handed_down(OpId weight) const {
    const std::uint32_t node = tree_.of_op(weight);
    const std::string_view name = graph_.op_name(weight);
    return node == ModuleTree::kRoot ||
           (tree_.node(node).parent == ModuleTree::kRoot && tree_.node(node).path == name);
  }

  bool is_trained(OpId weight) const {
    const auto consumers = graph_.consumers(graph_.outputs(weight)[0]);
    return std::any_of(consumers.begin(), consumers.end(),
                       [&](OpId reader) { return graph_.phase(reader) == Phase::kUpdate; });
  }

  void check_shared_weights() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.role(op) != OpRole::kParameter) continue;
      const bool copied = shared_ == SharedWeights::kCopied && is_trained(op);
      if (is_handed_down(op) && !copied) continue;
      const std::vector<OpId> readers = forward_readers(graph_, op);
      const auto other = std::find_if(readers.begin(), readers.end(), [&](OpId reader) {
        return result_.of_op[reader] != result_.of_op[readers.front()];
      });
      if (other == readers.end()) continue;
      std::set<std::uint32_t> modules;
      for (const OpId reader : readers) modules.insert(tree_.of_op(reader));
      // As exporters do to biases that are all zero: io/onnx_training_notes.h.
      const bool made_one = graph_.shape(graph_.outputs(op)[0]).size() < 2 && modules.size() > 2;
      if (made_one) {
        result_.made_one.push_back(op);
        continue;
      }
      fail_input(
          "parameter '{}' is shared by modules '{}' on {} and '{}' on {}; expected one device for "
          "both{}",
          graph_.op_name(op), tree_.node(tree_.of_op(readers.front())).path,
          name(result_.of_op[readers.front()]), tree_.node(tree_.of_op(*other)).path,
          name(result_.of_op[*other]),
          copied ? ", since each stage would train a copy of its own" : "");
    }
  }

  std::optional<OpId> first_op(std::uint32_t node) const {
    std::optional<OpId> first;
    for (const OpId op : tree_.node(node).ops) {
      if (counts(op) && !graph_.is_source(op)) {
        first = op;
        break;
      }
    }
    for (const std::uint32_t child : tree_.node(node).children) {
      const auto inside = first_op(child);
      if (inside && (!first || *inside < *first)) first = inside;
    }
    if (first) return first;
    for (const OpId op : tree_.node(node).ops) {
      if (counts(op)) return op;
    }
    return std::nullopt;
  }

  void add_entries(std::uint32_t node) {
    if (whole_[node]) {
      result_.entries.push_back({tree_.node(node).path, *whole_[node], first_op(node).value_or(0)});
      return;
    }
    for (const OpId op : tree_.node(node).ops) {
      const OpRole role = graph_.role(op);
      if (!counts(op) || (role != OpRole::kParameter && role != OpRole::kBuffer)) continue;
      result_.entries.push_back({std::string(graph_.op_name(op)), placement_[op], op});
    }
    for (const std::uint32_t child : tree_.node(node).children) add_entries(child);
  }

  const Graph& graph_;
  const Cluster& cluster_;
  const Placement& placement_;
  SharedWeights shared_;
  Modules modules_;
  ModuleTree tree_;
  std::vector<std::optional<DeviceId>> whole_;  // by module
  // By op: what follows from the model's inputs and constants alone, as labels that are reshaped
  // do, is brought where it is needed.
  std::vector<bool> is_free_;
  ModuleDevices result_;
};

}  // namespace

ModuleDevices module_devices(const Problem& problem, const Placement& placement,
                             SharedWeights shared) {
  return ModuleCover(problem, placement, shared).cover();
}

std::vector<OpId> forward_readers(const Graph& graph, OpId weight) {
  std::vector<OpId> readers;
  std::vector<TensorId> tensors(graph.outputs(weight).begin(), graph.outputs(weight).end());
  while (!tensors.empty()) {
    const TensorId tensor = tensors.back();
    tensors.pop_back();
    for (const OpId reader : graph.consumers(tensor)) {
      if (graph.phase(reader) != Phase::kForward) continue;
      if (!graph.is_view(reader)) {
        readers.push_back(reader);
        continue;
      }
      tensors.insert(tensors.end(), graph.outputs(reader).begin(), graph.outputs(reader).end());
    }
  }
  return readers;
}

int accelerator_number(const Cluster& cluster, DeviceId device) {
  if (cluster.is_cpu(device)) return -1;
  int number = 0;
  for (DeviceId other = 0; other < device; ++other) number += cluster.is_cpu(other) ? 0 : 1;
  return number;
}

}  // namespace emplace
