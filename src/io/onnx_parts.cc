// Cuts the list of nodes, function calls inlined, into convex segments (io/device_segments.h) and
// writes each as a model of its own. What a part reads and does not make is, in this order: an
// initializer or a Constant's value, which every part that reads it has; an input of the model; a
// value of an earlier part. Linear in nodes and weights, but for the merging of segments.
#include "io/onnx_parts.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "base/error.h"

#include "io/device_segments.h"
#include "io/file.h"
#include "io/json_layout.h"
#include "io/onnx_external.h"
#include "io/onnx_flat_model.h"
#include "io/onnx_flatten.h"
#include "io/onnx_node.h"
#include "io/onnx_value.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kNowhere = -1;

bool is_constant(const onnx::NodeProto& node) {
  return node.op_type() == "Constant" && canonical_domain(node.domain()).empty();
}

std::string file_stem(std::size_t number, std::size_t count, std::string name) {
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '.') c = '_';
  }
  const int digits = static_cast<int>(fmt::formatted_size("{}", count - 1));
  return fmt::format("part-{:0{}}-{}", number, digits, name);
}

// Which functions nodes call, and those that these call.
class CalledFunctions {
 public:
  explicit CalledFunctions(const onnx::ModelProto& model) : model_(model) {}

  void note(const onnx::NodeProto& node) {
    for (const auto& function : model_.functions()) {
      if (function.name() != node.op_type() || function.domain() != node.domain()) continue;
      if (!called_.insert(&function).second) continue;
      for (const auto& inner : function.node()) note(inner);
    }
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) note(attribute.g());
      for (const auto& graph : attribute.graphs()) note(graph);
    }
  }

  void add_to(onnx::ModelProto& part) const {
    for (const auto& function : model_.functions()) {
      if (called_.contains(&function)) *part.add_functions() = function;
    }
  }

 private:
  void note(const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) note(node);
  }

  const onnx::ModelProto& model_;
  std::set<const onnx::FunctionProto*> called_;
};

class PartsWriter {
 public:
  PartsWriter(const PlacedOnnx& placed, const std::string& folder)
      : placed_(placed),
        folder_(folder),
        flat_(read_flat_onnx(placed.source.bytes, placed.source.options)),
        graph_(*flat_.model.mutable_graph()) {}

  OnnxPartsSummary write() && {
    note_values();
    find_segments();
    find_flows();
    Json parts = Json::array();
    for (std::uint32_t part = 0; part < segments_.size(); ++part) parts.push_back(write_part(part));
    Json manifest{{"format", "emplace.onnx_parts/1"}, {"graph", placed_.graph}};
    manifest["devices"] = placed_.devices;
    manifest["inputs"] = Json::array();
    for (const auto& value : graph_.input()) {
      if (givens_.contains(value.name())) continue;
      Json input = describe(value.name());
      input["to"] = readers_[value.name()];
      manifest["inputs"].push_back(std::move(input));
    }
    manifest["outputs"] = Json::array();
    for (const auto& value : graph_.output()) {
      Json output = describe(value.name());
      const int maker = maker_of(value.name());
      output["from"] = maker == kNowhere ? Json("input") : Json(maker);
      manifest["outputs"].push_back(std::move(output));
    }
    manifest["tensors"] = tensors();
    manifest["parts"] = std::move(parts);
    write_file((std::filesystem::path(folder_) / kPartsManifest).string(), laid_out(manifest, 2));
    summary_.parts = segments_.size();
    return std::move(summary_);
  }

 private:
  // One of the three.
  struct Given {
    onnx::TensorProto* tensor = nullptr;
    onnx::SparseTensorProto* sparse = nullptr;
    const onnx::NodeProto* node = nullptr;
  };

  // What there is before any node runs, and which nodes matter to an output.
  void note_values() {
    for (auto& tensor : *graph_.mutable_initializer()) {
      givens_[tensor.name()] = Given{.tensor = &tensor};
    }
    for (auto& tensor : *graph_.mutable_sparse_initializer()) {
      givens_[tensor.values().name()] = Given{.sparse = &tensor};
    }
    for (const auto& value : graph_.output()) wanted_.insert(value.name());
    for (const FlatOnnxNode& node : flat_.nodes) {
      if (is_constant(node.proto)) givens_[node.proto.output(0)] = Given{.node = &node.proto};
    }
    std::vector<bool> matters(flat_.nodes.size(), false);
    std::unordered_set<std::string> read = wanted_;
    for (std::size_t i = flat_.nodes.size(); i-- > 0;) {
      const onnx::NodeProto& node = flat_.nodes[i].proto;
      if (is_constant(node)) continue;
      matters[i] = std::any_of(node.output().begin(), node.output().end(),
                               [&](const std::string& name) { return read.contains(name); });
      if (!matters[i]) continue;
      for (std::string& name : values_read(node)) read.insert(std::move(name));
    }
    for (std::size_t i = 0; i < flat_.nodes.size(); ++i) {
      if (matters[i]) nodes_.push_back(&flat_.nodes[i]);
    }
    if (nodes_.empty()) fail_input("has no op to cut into parts");
  }

  void find_segments() {
    std::vector<DeviceId> devices;
    std::vector<std::vector<std::uint32_t>> reads(nodes_.size());
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      devices.push_back(placed_.device_of(nodes_[i]->op));
      for (const std::string& name : values_read(nodes_[i]->proto)) {
        const auto maker = makers_.find(name);
        if (maker != makers_.end()) reads[i].push_back(maker->second);
      }
      for (const std::string& name : nodes_[i]->proto.output()) {
        if (!name.empty()) makers_[name] = i;
      }
    }
    segments_ = device_segments(devices, reads);
  }

  // The part that a value comes from; kNowhere for the model's inputs.
  int maker_of(const std::string& name) const {
    const auto maker = makers_.find(name);
    if (maker != makers_.end()) return static_cast<int>(segments_.of_node[maker->second]);
    // A given that is also an output is so in the first part.
    return givens_.contains(name) ? 0 : kNowhere;
  }

  void find_flows() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const std::uint32_t part = segments_.of_node[i];
      for (const std::string& name : values_read(nodes_[i]->proto)) {
        const auto maker = makers_.find(name);
        if (maker != makers_.end() && segments_.of_node[maker->second] == part) continue;
        readers_[name].insert(part);
      }
    }
    nodes_of_part_.resize(segments_.size());
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      nodes_of_part_[segments_.of_node[i]].push_back(i);
    }
  }

  const onnx::TypeProto& type_of(const std::string& name) const {
    const auto type = flat_.types.find(name);
    if (type != flat_.types.end() && type->second.value_case() != onnx::TypeProto::VALUE_NOT_SET) {
      return type->second;
    }
    const auto maker = makers_.find(name);
    fail_input("{}: the type of '{}', which goes to another part, is not known",
               maker == makers_.end() ? "graph" : node_label(nodes_[maker->second]->proto), name);
  }

  Json describe(const std::string& name) const {
    Json json{{"name", name}};
    const onnx::TypeProto& type = type_of(name);
    if (!type.has_tensor_type()) return json;
    json["dtype"] = dtype_name(onnx_dtype(type.tensor_type().elem_type()));
    json["shape"] = Json::array();
    for (const auto& dim : type.tensor_type().shape().dim()) {
      json["shape"].push_back(dim.has_dim_value() ? Json(dim.dim_value()) : Json(dim.dim_param()));
    }
    return json;
  }

  void add_given(const std::string& name, const Given& given, onnx::GraphProto& part,
                 ExternalCopier& weights) const {
    if (given.tensor != nullptr) {
      auto* added = part.add_initializer();
      *added = *given.tensor;
      weights.copy(*added);
    } else if (given.sparse != nullptr) {
      *part.add_sparse_initializer() = *given.sparse;
    } else {
      auto* added = part.add_node();
      *added = *given.node;
      for_each_tensor(*added, [&](onnx::TensorProto& tensor) { weights.copy(tensor); });
    }
    // A default that callers may override, which old files make of every weight.
    for (const auto& value : graph_.input()) {
      if (value.name() == name) *part.add_input() = value;
    }
  }

  static void add_value(const std::string& name, const onnx::TypeProto& type,
                        onnx::ValueInfoProto& value) {
    value.set_name(name);
    *value.mutable_type() = type;
  }

  Json write_part(std::uint32_t number) {
    onnx::ModelProto part;
    copy_header(part);
    const std::string stem =
        file_stem(number, segments_.size(), placed_.devices.at(segments_.device[number]));
    onnx::GraphProto& graph = *part.mutable_graph();
    graph.set_name(fmt::format("{}-{}", graph_.name(), number));
    ExternalCopier weights(placed_.source.folder, folder_, stem + ".weights");
    CalledFunctions functions(flat_.model);
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::set<std::uint32_t> after;
    std::unordered_set<std::string> known;
    const auto give = [&](const std::string& name) {
      if (!known.insert(name).second) return;
      const auto given = givens_.find(name);
      if (given != givens_.end()) return add_given(name, given->second, graph, weights);
      add_value(name, type_of(name), *graph.add_input());
      inputs.push_back(name);
      const int maker = maker_of(name);
      if (maker != kNowhere) after.insert(static_cast<std::uint32_t>(maker));
    };
    const auto take = [&](const std::string& name) {
      add_value(name, type_of(name), *graph.add_output());
      outputs.push_back(name);
    };
    for (const std::uint32_t i : nodes_of_part_[number]) {
      for (const std::string& name : nodes_[i]->proto.output()) known.insert(name);
    }
    for (const std::uint32_t i : nodes_of_part_[number]) {
      for (const std::string& name : values_read(nodes_[i]->proto)) give(name);
      add_node(nodes_[i]->proto, graph, weights, functions);
      for (const std::string& name : nodes_[i]->proto.output()) {
        if (name.empty()) continue;
        if (wanted_.contains(name) || readers_.contains(name)) {
          take(name);
        } else if (const auto type = flat_.types.find(name); type != flat_.types.end()) {
          add_value(name, type->second, *graph.add_value_info());
        }
      }
    }
    for (const auto& value : graph_.output()) {
      if (number != 0 || !givens_.contains(value.name())) continue;
      give(value.name());
      take(value.name());
    }
    functions.add_to(part);
    weights.finish();
    for (const std::string& file : weights.missing()) note_missing(file);
    write_file((std::filesystem::path(folder_) / (stem + ".onnx")).string(),
               part.SerializeAsString());
    Json json{{"file", stem + ".onnx"},
              {"device", placed_.devices.at(segments_.device[number])},
              {"nodes", nodes_of_part_[number].size()},
              {"after", after},
              {"inputs", inputs},
              {"outputs", outputs}};
    if (weights.written() > 0) json["weights"] = stem + ".weights";
    return json;
  }

  void copy_header(onnx::ModelProto& part) const {
    const onnx::ModelProto& model = flat_.model;
    part.set_ir_version(model.ir_version());
    *part.mutable_opset_import() = model.opset_import();
    part.set_producer_name(model.producer_name());
    part.set_producer_version(model.producer_version());
    part.set_domain(model.domain());
    part.set_model_version(model.model_version());
    *part.mutable_metadata_props() = model.metadata_props();
  }

  static void add_node(const onnx::NodeProto& node, onnx::GraphProto& graph,
                       ExternalCopier& weights, CalledFunctions& functions) {
    auto* added = graph.add_node();
    *added = node;
    for_each_tensor(*added, [&](onnx::TensorProto& tensor) { weights.copy(tensor); });
    functions.note(node);
  }

  void note_missing(const std::string& file) {
    auto& missing = summary_.missing;
    if (std::find(missing.begin(), missing.end(), file) == missing.end()) missing.push_back(file);
  }

  // What goes from part to part, in the order in which it is made.
  Json tensors() {
    Json list = Json::array();
    for (const FlatOnnxNode* node : nodes_) {
      for (const std::string& name : node->proto.output()) {
        const auto readers = readers_.find(name);
        if (name.empty() || readers == readers_.end()) continue;
        Json json = describe(name);
        OnnxValue value;
        value.type = type_of(name);
        value.settle();
        if (value.known) json["bytes"] = value.bytes;
        json["op"] = node->op;
        json["from"] = maker_of(name);
        json["to"] = readers->second;
        list.push_back(std::move(json));
        ++summary_.tensors;
        summary_.bytes += value.bytes * static_cast<Bytes>(readers->second.size());
      }
    }
    return list;
  }

  const PlacedOnnx& placed_;
  const std::string& folder_;
  FlatOnnxModel flat_;
  onnx::GraphProto& graph_;
  std::unordered_map<std::string, Given> givens_;
  std::unordered_set<std::string> wanted_;  // outputs of the model
  std::vector<const FlatOnnxNode*> nodes_;  // of parts
  std::unordered_map<std::string, std::uint32_t> makers_;
  std::unordered_map<std::string, std::set<std::uint32_t>> readers_;  // parts that do not make it
  std::vector<std::vector<std::uint32_t>> nodes_of_part_;
  DeviceSegments segments_;
  OnnxPartsSummary summary_;
};

}  // namespace

OnnxPartsSummary write_onnx_parts(const PlacedOnnx& model, const std::string& folder) {
  return PartsWriter(model, folder).write();
}

}  // namespace emplace
