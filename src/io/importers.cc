// What a file says of some ops becomes a placement of all: ops that must share a device follow each
// other; then, in the order of the graph, an op follows the last of what it reads from, and what is
// left, the first that reads it. Ops of the backward pass and updates go by their modules or, where
// a format names ops, by the forward op or parameter that they are of.
#include "io/importers.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/options.h"

#include "graph/modules.h"

#include "io/json_fields.h"
#include "io/module_devices.h"
#include "io/onnx_devices.h"

namespace emplace {
namespace {

std::optional<DeviceId> find_named_device(const Cluster& cluster, std::string_view name) {
  if (const auto device = cluster.find_device(name)) return *device;
  std::string_view number = name;
  for (const std::string_view prefix : {"cuda:", "GPU:", "gpu:", "xpu:"}) {
    if (number.starts_with(prefix)) number.remove_prefix(prefix.size());
  }
  int wanted = -1;
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, wanted);
  const bool numbered = error == std::errc() && stop == end;
  int accelerators = 0;  // before this one: counted here, since files name a device on every line
  for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
    const bool cpu = cluster.is_cpu(device);
    if (cpu ? name == "cpu" : numbered && wanted == accelerators++) return device;
  }
  return std::nullopt;
}

DeviceId named_device(const Cluster& cluster, std::string_view name, const std::string& where) {
  if (const auto device = find_named_device(cluster, name)) return *device;
  if (name == "disk") fail_input("{}: offloading to disk is nothing that a cluster has", where);
  fail_input("{}: cluster '{}' has no device '{}'; expected a device's name, a GPU's number or cpu",
             where, cluster.name(), name);
}

DeviceId json_device(const Cluster& cluster, JsonValue value, const std::string& where) {
  if (value.type() == simdjson::ondemand::json_type::string) {
    return named_device(cluster, std::string_view(value.get_string()), where);
  }
  if (value.type() != simdjson::ondemand::json_type::number) {
    fail_input("{}: expected a device's name or a GPU's number", where);
  }
  return named_device(cluster, fmt::format("{}", json_integer(value, where)), where);
}

// Gives every op a device, beginning with those that have one.
class Completion {
 public:
  Completion(const Problem& problem, Placement known)
      : problem_(problem), graph_(problem.graph()), placement_(std::move(known)) {}

  Placement complete() && {
    spread_over_groups();
    for (OpId op = 0; op < graph_.num_ops(); ++op) follow_inputs(op);
    for (OpId op = graph_.num_ops(); op-- > 0;) follow_readers(op);
    for (OpId op = 0; op < graph_.num_ops(); ++op) follow_inputs(op);
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (placement_[op] == kNoDevice) give(op, 0);
    }
    check_placement(problem_, placement_);
    return std::move(placement_);
  }

 private:
  void spread_over_groups() {
    for (GroupId group = 0; group < problem_.num_groups(); ++group) {
      std::optional<OpId> known;
      for (const OpId op : problem_.group_ops(group)) {
        if (placement_[op] == kNoDevice) continue;
        if (known && placement_[*known] != placement_[op]) {
          fail_input(
              "op '{}' is on {} and op '{}' on {}; expected one device, which they must share",
              graph_.op_name(*known), name(*known), graph_.op_name(op), name(op));
        }
        known = op;
      }
      if (known) give(*known, placement_[*known]);
    }
  }

  const std::string& name(OpId op) const { return problem_.cluster().device(placement_[op]).name; }

  void give(OpId op, DeviceId device) {
    for (const OpId other : problem_.group_ops(problem_.group_of(op))) placement_[other] = device;
  }

  void follow_inputs(OpId op) {
    if (placement_[op] != kNoDevice) return;
    std::optional<OpId> last;
    for (const TensorId tensor : graph_.inputs(op)) {
      const OpId from = graph_.producer(tensor);
      if (placement_[from] != kNoDevice && (!last || from > *last)) last = from;
    }
    if (last) give(op, placement_[*last]);
  }

  void follow_readers(OpId op) {
    if (placement_[op] != kNoDevice) return;
    for (const TensorId tensor : graph_.outputs(op)) {
      for (const OpId reader : graph_.consumers(tensor)) {
        if (placement_[reader] != kNoDevice) return give(op, placement_[reader]);
      }
    }
  }

  const Problem& problem_;
  const Graph& graph_;
  Placement placement_;
};

// What is said of modules, op by op; kNoDevice where nothing is.
class NamedModules {
 public:
  explicit NamedModules(const Problem& problem)
      : problem_(problem), modules_(infer_modules(problem.graph())) {}

  void say(const std::string& path, DeviceId device) {
    if (!said_.emplace(path, device).second) fail_input("module '{}': is there twice", path);
  }

  // The longest path around the module that something is said of; empty paths are all modules.
  Placement placement(std::vector<std::string>& unused) const {
    const Graph& graph = problem_.graph();
    Placement placement(graph.num_ops(), kNoDevice);
    std::unordered_map<std::string, bool> used;
    std::vector<DeviceId> of_module;
    for (const std::string& name : modules_.names) {
      std::string path = name;
      while (!said_.contains(path) && !path.empty()) {
        const std::size_t dot = path.rfind('.');
        path.resize(dot == std::string::npos ? 0 : dot);
      }
      const auto found = said_.find(path);
      of_module.push_back(found == said_.end() ? kNoDevice : found->second);
      if (found != said_.end()) used[path] = true;
    }
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      // A parameter may be named itself.
      const auto own = said_.find(std::string(graph.op_name(op)));
      placement[op] = own != said_.end() ? own->second : of_module[modules_.of_op[op]];
      if (own != said_.end()) used[own->first] = true;
    }
    for (const auto& [path, device] : said_) {
      if (!used.contains(path)) unused.push_back(path);
    }
    std::sort(unused.begin(), unused.end());
    return placement;
  }

 private:
  const Problem& problem_;
  Modules modules_;
  std::unordered_map<std::string, DeviceId> said_;
};

void note_unused(const ImportInput& input, const std::vector<std::string>& unused) {
  if (unused.empty() || !input.note) return;
  input.note(fmt::format(
      "the model has nothing of the name '{}'{}", unused.front(),
      unused.size() > 1 ? fmt::format(", nor of {} others", unused.size() - 1) : std::string()));
}

void require_some(const ImportInput& input, const Placement& placement) {
  const bool some = std::any_of(placement.begin(), placement.end(),
                                [](DeviceId device) { return device != kNoDevice; });
  if (!some) {
    fail_input("names no module or op of graph '{}'", input.problem.graph().name());
  }
}

Placement import_device_map(const ImportInput& input) {
  NamedModules modules(input.problem);
  JsonText json(input.content);
  reading_json([&] {
    for (auto field : json_root(json.document())) {
      const std::string path(std::string_view(field.unescaped_key()));
      modules.say(path, json_device(input.problem.cluster(), field.value(),
                                    fmt::format("module '{}'", path)));
    }
    expect_end(json.document());
  });
  std::vector<std::string> unused;
  Placement placement = modules.placement(unused);
  require_some(input, placement);
  note_unused(input, unused);
  return Completion(input.problem, std::move(placement)).complete();
}

// A field of CSV, which may be in quotes.
std::string unquoted(const std::string& field) {
  if (field.size() < 2 || field.front() != '"' || field.back() != '"') return field;
  std::string plain;
  for (std::size_t i = 1; i + 1 < field.size(); ++i) {
    if (field[i] == '"') ++i;
    plain += field[i];
  }
  return plain;
}

// Lines of "name,device". What begins with # is a comment, unless an op is called so; of the others
// the first is a title if it names neither an op nor a device.
void read_name_lines(const ImportInput& input,
                     const std::function<void(const std::string&, const std::string&)>& say) {
  const Graph& graph = input.problem.graph();
  std::size_t number = 0;
  std::size_t begin = 0;
  bool first = true;
  const std::string& text = input.content;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const std::size_t split = line.find_last_of(",\t");
    const bool has_device = split != std::string::npos;
    const std::string name = unquoted(line.substr(0, split));
    const bool known = has_device && graph.find_op(name).has_value();
    if (line.front() == '#' && !known) continue;
    if (!has_device) fail_input("line {}: expected NAME,DEVICE instead of '{}'", number, line);
    const std::string device = unquoted(line.substr(split + 1));
    const bool title = first && !known && !find_named_device(input.problem.cluster(), device);
    first = false;
    if (!title) say(name, device);
  }
}

Placement import_by_name(const ImportInput& input) {
  const Graph& graph = input.problem.graph();
  const Cluster& cluster = input.problem.cluster();
  Placement placement(graph.num_ops(), kNoDevice);
  std::vector<std::string> unused;
  const auto say = [&](const std::string& name, DeviceId device) {
    const auto op = graph.find_op(name);
    if (!op) return unused.push_back(name);
    if (placement[*op] != kNoDevice) fail_input("op '{}': is there twice", name);
    placement[*op] = device;
  };
  const std::size_t start = input.content.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && input.content[start] == '{') {
    JsonText json(input.content);
    reading_json([&] {
      for (auto field : json_root(json.document())) {
        const std::string name(std::string_view(field.unescaped_key()));
        say(name, json_device(cluster, field.value(), fmt::format("op '{}'", name)));
      }
      expect_end(json.document());
    });
  } else {
    read_name_lines(input, [&](const std::string& name, const std::string& device) {
      say(name, named_device(cluster, device, fmt::format("op '{}'", name)));
    });
  }
  require_some(input, placement);
  note_unused(input, unused);
  return Completion(input.problem, std::move(placement)).complete();
}

Placement import_onnx_devices(const ImportInput& input) {
  OnnxSource source{.bytes = input.content};
  source.options.dims = input.dims;
  const auto notes = read_onnx_devices(source);
  if (!notes) fail_input("has no device configuration; expected ONNX annotations of IR 11");
  const Graph& graph = input.problem.graph();
  Placement placement(graph.num_ops(), kNoDevice);
  for (const auto& [name, note] : notes->ops) {
    const auto op = graph.find_op(name);
    if (!op) fail_input("op '{}' is not in graph '{}'", name, graph.name());
    if (note.cut() || note.devices.size() > 1) {
      fail_input("op '{}': is divided among devices; expected one device for each op", name);
    }
    if (note.devices.empty()) continue;
    const std::int64_t number = note.devices.front();
    const bool named = number >= 0 && number < static_cast<std::int64_t>(notes->devices.size());
    placement[*op] = named_device(
        input.problem.cluster(),
        named ? notes->devices[static_cast<std::size_t>(number)] : fmt::format("{}", number),
        fmt::format("op '{}'", name));
  }
  require_some(input, placement);
  return Completion(input.problem, std::move(placement)).complete();
}

constexpr Importer kImporters[]{
    {"device_map", "Hugging Face: modules to numbers of GPUs or \"cpu\", as JSON",
     import_device_map},
    {"placement-by-name", "ops to devices, as a JSON object or as lines of NAME,DEVICE",
     import_by_name},
    {"onnx-devices", "a model with ONNX's multi-device annotations", import_onnx_devices},
};

}  // namespace

std::span<const Importer> importers() {
  return kImporters;
}

const Importer& find_importer(std::string_view name) {
  std::vector<std::string> known;
  for (const Importer& importer : kImporters) {
    if (importer.name == name) return importer;
    known.emplace_back(importer.name);
  }
  fail_option("unknown format '{}'{}; expected one of: {}", name, suggestion(name, known),
              fmt::join(known, ", "));
}

}  // namespace emplace
