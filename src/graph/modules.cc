// Finds modules by spreading labels over the graph, one pass for each rule of modules.h.
//
// A label is the number of a module's name. Rules go from sure to unsure (own name, path, weights
// read, neighbours), and no pass changes a label that is already there, so the first rule that
// applies decides. Passes from producers follow the topological order and passes from consumers its
// reverse, so one of each carries a label along whole chains of ops without one. Backward ops try
// the module whose update they alone serve before that of their inputs, since a weight's gradient
// reads what the module before put out. Modules are numbered as the forward pass meets them. A
// heuristic, as names are. Linear in ops and edges.
#include "graph/modules.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "base/string_pool.h"

namespace emplace {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string_view without_call_number(std::string_view part) {
  const std::size_t at = part.rfind('_');
  const bool numbered = at != std::string_view::npos && at > 0 && all_digits(part.substr(at + 1));
  return numbered ? part.substr(0, at) : part;
}

// "encoder.layer.1.step.7", a step of an unrolled layer -> "encoder.layer.1".
std::string_view without_step(std::string_view module) {
  static constexpr std::string_view kStep = ".step.";
  const std::size_t at = module.rfind(kStep);
  const bool numbered =
      at != std::string_view::npos && all_digits(module.substr(at + kStep.size()));
  return numbered ? module.substr(0, at) : module;
}

// "/net/layer2/layer2.1" -> "net.layer2.1".
std::string dotted(std::string_view path, bool keep_call_numbers) {
  std::vector<std::string_view> parts = split(path, "/");
  if (!keep_call_numbers) {
    for (std::string_view& part : parts) part = without_call_number(part);
  }
  std::string result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool repeated = i + 1 < parts.size() && parts[i + 1].size() > parts[i].size() &&
                          parts[i + 1].starts_with(parts[i]) &&
                          parts[i + 1][parts[i].size()] == '.';
    if (repeated) continue;
    if (!result.empty()) result += '.';
    result += parts[i];
  }
  return result;
}

std::string module_of_parameter_name(std::string_view name) {
  if (name.find("::") != std::string_view::npos) return {};
  const std::size_t at = name.find_last_of("./");
  if (at == std::string_view::npos || all_digits(name.substr(at + 1))) return dotted(name, true);
  return dotted(name.substr(0, at), true);
}

bool holds_weights(const Graph& graph, OpId op) {
  return graph.role(op) == OpRole::kParameter || graph.role(op) == OpRole::kBuffer;
}

// What each op is, or is a view of.
std::vector<OpId> view_roots(const Graph& graph) {
  std::vector<OpId> root(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const bool is_view = graph.is_view(op) && !graph.inputs(op).empty();
    root[op] = is_view ? root[graph.producer(graph.inputs(op).front())] : op;
  }
  return root;
}

class ModuleFinder {
 public:
  explicit ModuleFinder(const Graph& graph)
      : graph_(graph), root_(view_roots(graph)), label_(graph.num_ops(), kNone) {}

  Modules find() && {
    label_parameters();
    label_by_name_and_parameter();
    const bool named =
        std::any_of(label_.begin(), label_.end(), [](std::uint32_t l) { return l != kNone; });
    if (!named) label_each_forward_op();
    label_forward_from_producers();
    label_from_consumers(Phase::kForward);
    label_what_serves_one_update();
    label_backward_from_producers();
    label_from_consumers(Phase::kBackward);
    label_from_consumers(Phase::kUpdate);
    Modules modules = number();
    modules.named = named;
    return modules;
  }

 private:
  void label_parameters() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (!holds_weights(graph_, op) || is_part_of_update(op)) continue;
      const std::string name = graph_.module_id(op) != kEmptyString
                                   ? dotted(graph_.module(op), true)
                                   : module_of_parameter_name(graph_.op_name(op));
      if (!name.empty()) label_[op] = pool_.intern(name);
    }
  }

  // "fc.weight/update" and the state beside it are of the module of "fc.weight", whose name is no
  // path.
  bool is_part_of_update(OpId op) const {
    return graph_.phase(op) == Phase::kUpdate && graph_.module_id(op) == kEmptyString &&
           graph_.op_name(op).find('/') != std::string_view::npos;
  }

  // The module that the text names; every name in the pool when this is first called is a
  // parameter's.
  std::uint32_t label_of_path(std::string_view path) {
    const std::string full = dotted(path, true);
    if (full.empty()) return kNone;
    if (const auto known = pool_.find(full); known && *known < parameter_labels_) return *known;
    const auto shorter = pool_.find(without_step(dotted(path, false)));
    return shorter && *shorter < parameter_labels_ ? *shorter : pool_.intern(full);
  }

  std::uint32_t label_of_weights_read(OpId op) const {
    for (const OpRole role : {OpRole::kParameter, OpRole::kBuffer}) {
      for (const TensorId tensor : graph_.inputs(op)) {
        const OpId root = root_[graph_.producer(tensor)];
        if (graph_.role(root) == role && label_[root] != kNone) return label_[root];
      }
    }
    return kNone;
  }

  void label_by_name_and_parameter() {
    parameter_labels_ = pool_.size();
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (holds_weights(graph_, op)) continue;
      if (graph_.module_id(op) != kEmptyString) {
        label_[op] = label_of_path(graph_.module(op));
      } else if (const auto at = graph_.op_name(op).rfind('/');
                 at != std::string_view::npos && !is_part_of_update(op)) {
        label_[op] = label_of_path(graph_.op_name(op).substr(0, at));
      }
      if (label_[op] == kNone) label_[op] = label_of_weights_read(op);
    }
  }

  void label_each_forward_op() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const bool own = graph_.phase(op) == Phase::kForward && !graph_.is_source(op);
      if (own && !graph_.is_view(op)) label_[op] = pool_.intern(graph_.op_name(op));
    }
  }

  // The label of the latest op that the op reads from and `accepts` takes. A view stands for what
  // it is a view of: backward passes see saved activations through views of their own.
  template <class Accepts>
  std::uint32_t latest_label(OpId op, const Accepts& accepts) const {
    OpId latest = kNoOp;
    for (const TensorId tensor : graph_.inputs(op)) {
      const OpId producer = root_[graph_.producer(tensor)];
      if (label_[producer] == kNone || !accepts(producer)) continue;
      if (latest == kNoOp || producer > latest) latest = producer;
    }
    return latest == kNoOp ? kNone : label_[latest];
  }

  void label_forward_from_producers() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (label_[op] != kNone || graph_.phase(op) != Phase::kForward) continue;
      label_[op] = latest_label(op, [](OpId) { return true; });
    }
  }

  void label_from_consumers(Phase phase) {
    for (OpId op = graph_.num_ops(); op-- > 0;) {
      if (label_[op] != kNone || graph_.phase(op) != phase) continue;
      OpId first = kNoOp;
      for (const TensorId tensor : graph_.outputs(op)) {
        for (const OpId consumer : graph_.consumers(tensor)) {
          if (label_[consumer] != kNone) first = std::min(first, consumer);
        }
      }
      if (first != kNoOp) label_[op] = label_[first];
    }
  }

  // A weight's gradient is made from the activations of the module before; only its use tells.
  void label_what_serves_one_update() {
    std::vector<std::uint32_t> serves(graph_.num_ops(), kNone);
    for (OpId op = graph_.num_ops(); op-- > 0;) {
      if (graph_.phase(op) == Phase::kUpdate) serves[op] = label_[op];
      if (graph_.phase(op) != Phase::kBackward || label_[op] != kNone) continue;
      std::uint32_t common = kNone;
      bool agree = true;
      for (const TensorId tensor : graph_.outputs(op)) {
        for (const OpId consumer : graph_.consumers(tensor)) {
          if (common == kNone) common = serves[consumer];
          agree = agree && serves[consumer] != kNone && serves[consumer] == common;
        }
      }
      if (agree) serves[op] = label_[op] = common;
    }
  }

  void label_backward_from_producers() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (label_[op] != kNone || graph_.phase(op) == Phase::kForward) continue;
      label_[op] = latest_label(op, [&](OpId producer) {
        return graph_.phase(producer) == Phase::kForward && !graph_.is_source(producer);
      });
      if (label_[op] == kNone) label_[op] = latest_label(op, [](OpId) { return true; });
    }
  }

  Modules number() {
    std::vector<std::uint32_t> module_of_label(pool_.size() + 1, kNone);  // the last: no label
    Modules modules;
    const auto number_of = [&](OpId op) {
      const std::uint32_t label = label_[op] == kNone ? pool_.size() : label_[op];
      if (module_of_label[label] == kNone) {
        module_of_label[label] = modules.size();
        modules.names.emplace_back(label_[op] == kNone ? "" : pool_.get(label));
      }
      return module_of_label[label];
    };
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const bool runs = !graph_.is_source(op) && !graph_.is_view(op);
      if (runs && graph_.phase(op) == Phase::kForward) number_of(op);
    }
    for (OpId op = 0; op < graph_.num_ops(); ++op) modules.of_op.push_back(number_of(op));
    return modules;
  }

  const Graph& graph_;
  const std::vector<OpId> root_;
  StringPool pool_{StringPool::WithoutEmpty{}};
  std::uint32_t parameter_labels_ = 0;
  std::vector<std::uint32_t> label_;
};

// Where a recurrent module stands by its name.
struct LayerName {
  std::string stack;
  std::string number;  // empty: none
};

LayerName parse_layer_name(std::string_view name) {
  static constexpr std::string_view kDirections[] = {"fw",      "bw",       "fwd",     "bwd",
                                                     "forward", "backward", "reverse", "rev"};
  LayerName result;
  std::vector<std::string_view> parts = split(name, "._/");
  std::erase_if(parts, [](std::string_view part) {
    return std::find(std::begin(kDirections), std::end(kDirections), part) != std::end(kDirections);
  });
  const auto last_number = std::find_if(parts.rbegin(), parts.rend(), all_digits);
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (last_number != parts.rend() && part == std::prev(last_number.base())) {
      result.number = *part;
    } else {
      result.stack.append(*part).append(".");
    }
  }
  return result;
}

constexpr std::int64_t kFewSteps = 4;

// Which forward ops read weights, directly or through views.
std::vector<bool> weight_readers(const Graph& graph, const std::vector<OpId>& root) {
  std::vector<bool> reads(graph.num_ops(), false);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kForward || graph.is_view(op)) continue;
    for (const TensorId tensor : graph.inputs(op)) {
      if (graph.role(root[graph.producer(tensor)]) == OpRole::kParameter) reads[op] = true;
    }
  }
  return reads;
}

std::vector<bool> recurrent_modules(const Graph& graph, const Modules& modules,
                                    const std::vector<OpId>& root, const std::vector<bool>& reads) {
  std::vector<std::int64_t> steps(modules.size(), 0);   // most readers of one parameter
  std::vector<std::int64_t> states(modules.size(), 0);  // most readers on one path in the module
  std::vector<std::int64_t> readers(graph.num_ops(), 0);
  std::vector<OpId> last_reader(graph.num_ops(), kNoOp);
  std::vector<std::int64_t> chain(graph.num_ops(), 0);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kForward || graph.is_source(op)) continue;
    const std::uint32_t module = modules.of_op[op];
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      if (modules.of_op[producer] == module) chain[op] = std::max(chain[op], chain[producer]);
      const OpId weights = root[producer];
      if (!reads[op] || graph.role(weights) != OpRole::kParameter || last_reader[weights] == op) {
        continue;
      }
      last_reader[weights] = op;
      std::int64_t& most = steps[modules.of_op[weights]];
      most = std::max(most, ++readers[weights]);
    }
    if (reads[op]) ++chain[op];
    states[module] = std::max(states[module], chain[op]);
  }
  std::vector<bool> recurrent(modules.size());
  for (std::uint32_t m = 0; m < modules.size(); ++m) {
    recurrent[m] = steps[m] > kFewSteps && states[m] > kFewSteps;
  }
  return recurrent;
}

// By module: whether it works on what recurrent modules have made. Judged by the ops that read its
// parameters where there are any, for what follows an embedding may join later results.
std::vector<bool> modules_behind(const Graph& graph, const Modules& modules,
                                 const std::vector<bool>& recurrent,
                                 const std::vector<bool>& reads) {
  std::vector<bool> behind(graph.num_ops(), false);
  std::vector<bool> reader_behind(modules.size(), false);
  std::vector<bool> any_behind(modules.size(), false);
  std::vector<bool> has_reader(modules.size(), false);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      const bool state = recurrent[modules.of_op[producer]] && !graph.is_source(producer);
      if (behind[producer] || state) behind[op] = true;
    }
    if (graph.phase(op) != Phase::kForward) continue;
    const std::uint32_t module = modules.of_op[op];
    if (behind[op]) any_behind[module] = true;
    if (reads[op]) has_reader[module] = true;
    if (reads[op] && behind[op]) reader_behind[module] = true;
  }
  std::vector<bool> result(modules.size());
  for (std::uint32_t m = 0; m < modules.size(); ++m) {
    result[m] = has_reader[m] ? reader_behind[m] : any_behind[m];
  }
  return result;
}

}  // namespace

Modules infer_modules(const Graph& graph) {
  return ModuleFinder(graph).find();
}

RecurrentLayers find_recurrent_layers(const Graph& graph, const Modules& modules) {
  const std::vector<OpId> root = view_roots(graph);
  const std::vector<bool> reads = weight_readers(graph, root);
  const std::vector<bool> recurrent = recurrent_modules(graph, modules, root, reads);

  RecurrentLayers layers;
  std::map<std::string, std::map<std::string, std::uint32_t>> layer_by_number;  // by stack
  layers.of_module.assign(modules.size(), 0);
  for (std::uint32_t m = 0; m < modules.size(); ++m) {
    if (!recurrent[m]) continue;
    const LayerName name = parse_layer_name(modules.names[m]);
    auto& stack = layer_by_number[name.stack];
    const auto next = static_cast<std::uint32_t>(stack.size());
    layers.of_module[m] = stack.try_emplace(name.number, next).first->second;
    layers.count = std::max(layers.count, layers.of_module[m] + 1);
  }
  if (layers.count < 2) return {};
  const std::vector<bool> behind = modules_behind(graph, modules, recurrent, reads);
  for (std::uint32_t m = 0; m < modules.size(); ++m) {
    if (!recurrent[m] && behind[m]) layers.of_module[m] = layers.count - 1;
  }
  return layers;
}

}  // namespace emplace
