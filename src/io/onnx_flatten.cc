// Inlines function calls depth first, then sorts the nodes.
//
// Values of a body get a prefix that is different for every call, so names stay unique; its inputs
// and outputs get the names of what the call gives and takes. Functions may call functions, but not
// themselves: one that is being inlined is marked, and meeting it again is an error. Nested calls
// can grow exponentially with the file's size, so their sum is limited. An order that is
// topological already, as ONNX demands and not every exporter obeys, is kept. Of n nodes after
// inlining: O(n log n), and O(n) where no sorting is needed.
#include "io/onnx_flatten.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <google/protobuf/unknown_field_set.h>

#include "base/error.h"
#include "base/limits.h"

#include "io/onnx_node.h"
#include "io/topological_order.h"

namespace emplace {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;

// Fields that are newer than the library's headers.
constexpr int kFunctionDefaultsField = 11;
constexpr int kFunctionOverloadField = 13;
constexpr int kNodeOverloadField = 8;

template <class Message>
std::vector<std::string> unknown_strings(const Message& message, int number) {
  std::vector<std::string> found;
  const auto& unknown = message.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      found.push_back(field.length_delimited());
    }
  }
  return found;
}

std::string function_key(std::string_view domain, const std::string& name,
                         const std::vector<std::string>& overload) {
  return fmt::format("{}.{}:{}", canonical_domain(domain), name,
                     overload.empty() ? std::string() : overload.back());
}

template <class Imports>
Opsets read_opsets(const Imports& imports) {
  Opsets opsets;
  for (const auto& import : imports) {
    opsets[std::string(canonical_domain(import.domain()))] =
        static_cast<int>(std::min<std::int64_t>(import.version(), 1'000'000));
  }
  return opsets;
}

// Gives the names and attributes of a function's body those of one call of it.
class Renamer {
 public:
  Renamer(const NodeProto& call, const onnx::FunctionProto& function,
          const std::vector<AttributeProto>& defaults, std::int64_t number)
      : node_prefix_((call.name().empty() ? function.name() : call.name()) + '/'),
        value_prefix_(fmt::format("{}#{}/", function.name(), number)) {
    for (int i = 0; i < function.input_size(); ++i) {
      names_[function.input(i)] = i < call.input_size() ? call.input(i) : std::string();
    }
    for (int i = 0; i < function.output_size() && i < call.output_size(); ++i) {
      if (!call.output(i).empty()) names_.try_emplace(function.output(i), call.output(i));
    }
    for (const auto& attribute : defaults) attributes_[attribute.name()] = &attribute;
    for (const auto& attribute : call.attribute()) attributes_[attribute.name()] = &attribute;
  }

  std::string rename(const std::string& name) const {
    if (name.empty()) return name;
    const auto found = names_.find(name);
    return found != names_.end() ? found->second : value_prefix_ + name;
  }

  void apply(NodeProto& node) const {
    for (auto& name : *node.mutable_input()) name = rename(name);
    for (auto& name : *node.mutable_output()) name = rename(name);
    if (!node.name().empty()) node.set_name(node_prefix_ + node.name());
    google::protobuf::RepeatedPtrField<AttributeProto> attributes;
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.ref_attr_name().empty()) {
        if (attribute.has_g()) apply(*attribute.mutable_g());
        for (auto& graph : *attribute.mutable_graphs()) apply(graph);
        attributes.Add()->Swap(&attribute);
        continue;
      }
      // An attribute that the call does not give keeps the operator's own default.
      const auto given = attributes_.find(attribute.ref_attr_name());
      if (given == attributes_.end()) continue;
      auto* added = attributes.Add();
      *added = *given->second;
      added->set_name(attribute.name());
    }
    node.mutable_attribute()->Swap(&attributes);
  }

 private:
  void apply(GraphProto& graph) const {
    for (auto& value : *graph.mutable_input()) value.set_name(rename(value.name()));
    for (auto& value : *graph.mutable_output()) value.set_name(rename(value.name()));
    for (auto& value : *graph.mutable_value_info()) value.set_name(rename(value.name()));
    for (auto& tensor : *graph.mutable_initializer()) tensor.set_name(rename(tensor.name()));
    for (auto& tensor : *graph.mutable_sparse_initializer()) {
      tensor.mutable_values()->set_name(rename(tensor.values().name()));
    }
    for (auto& node : *graph.mutable_node()) apply(node);
  }

  std::string node_prefix_;
  std::string value_prefix_;  // unlike the other, different for every call
  std::unordered_map<std::string, std::string> names_;
  std::unordered_map<std::string, const AttributeProto*> attributes_;
};

using NameSet = std::unordered_set<std::string>;

// The values that the graph has before any node of it runs.
NameSet given_names(const GraphProto& graph) {
  NameSet names;
  for (const auto& value : graph.input()) names.insert(value.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  return names;
}

// What a body reads from around it, appended to `read`; `seen` holds what is there already.
void append_captured(const GraphProto& graph, NameSet& seen, std::vector<std::string>& read) {
  NameSet own = given_names(graph);
  for (const auto& node : graph.node()) own.insert(node.output().begin(), node.output().end());
  const auto note = [&](const std::string& name) {
    if (name.empty() || own.contains(name) || !seen.insert(name).second) return;
    read.push_back(name);
  };
  for (const auto& node : graph.node()) {
    for (const std::string& name : values_read(node)) note(name);
  }
  for (const auto& value : graph.output()) note(value.name());
}

// Puts the nodes in topological order, keeping the given order where it is one.
class Sorter {
 public:
  // `given`: the graph's own inputs and initializers; `exists_outside`: names from around it.
  Sorter(std::vector<OnnxNode>& nodes, const NameSet& given,
         const std::function<bool(const std::string&)>& exists_outside)
      : nodes_(nodes) {
    for (std::uint32_t i = 0; i < nodes.size(); ++i) note_outputs(i, given);
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      note_inputs(
          i, [&](const std::string& name) { return given.contains(name) || exists_outside(name); });
    }
  }

  void check_outputs(const GraphProto& graph, const NameSet& given,
                     const std::function<bool(const std::string&)>& exists_outside) const {
    for (const auto& value : graph.output()) {
      const std::string& name = value.name();
      if (producer_.contains(name) || given.contains(name) || exists_outside(name)) continue;
      fail_input("output '{}' of the graph is produced by no node, input or initializer", name);
    }
  }

  void sort() {
    if (sorted_) return;
    const auto order =
        topological_order(nodes_.size(), edges_, [&](std::uint32_t node) { return label(node); });
    std::vector<OnnxNode> ordered;
    ordered.reserve(nodes_.size());
    for (const std::uint32_t node : order) ordered.push_back(std::move(nodes_[node]));
    nodes_ = std::move(ordered);
  }

 private:
  void note_outputs(std::uint32_t i, const NameSet& given) {
    const NodeProto& node = nodes_[i].proto;
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      if (given.contains(name)) {
        fail_input("{}: output '{}' is also an input or initializer of the graph", node_label(node),
                   name);
      }
      const auto [other, added] = producer_.try_emplace(name, i);
      if (!added) {
        fail_input("{}: output '{}' is already produced by {}", node_label(node), name,
                   node_label(nodes_[other->second].proto));
      }
    }
  }

  void note_inputs(std::uint32_t i, const std::function<bool(const std::string&)>& exists) {
    for (const std::string& name : values_read(nodes_[i].proto)) {
      const auto found = producer_.find(name);
      if (found != producer_.end()) {
        edges_.emplace_back(found->second, i);
        if (found->second >= i) sorted_ = false;
      } else if (!exists(name)) {
        fail_input("{}: input '{}' is produced by no node, input or initializer",
                   node_label(nodes_[i].proto), name);
      }
    }
  }

  std::string label(std::uint32_t node) const {
    const NodeProto& proto = nodes_[node].proto;
    const bool unnamed = proto.name().empty() && proto.output_size() > 0;
    return fmt::format("'{}'", unnamed ? proto.output(0) : proto.name());
  }

  std::vector<OnnxNode>& nodes_;
  std::unordered_map<std::string, std::uint32_t> producer_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  bool sorted_ = true;
};

}  // namespace

OnnxFlattener::OnnxFlattener(const onnx::ModelProto& model)
    : opsets_(read_opsets(model.opset_import())) {
  for (const auto& proto : model.functions()) {
    Function function{.proto = &proto, .opsets = read_opsets(proto.opset_import())};
    for (const std::string& bytes : unknown_strings(proto, kFunctionDefaultsField)) {
      AttributeProto attribute;
      if (!attribute.ParseFromString(bytes)) {
        fail_input("function '{}': attribute_proto: is not a valid attribute", proto.name());
      }
      function.defaults.push_back(std::move(attribute));
    }
    for (const auto& [domain, version] : opsets_) function.opsets.try_emplace(domain, version);
    const std::string key =
        function_key(proto.domain(), proto.name(), unknown_strings(proto, kFunctionOverloadField));
    if (!functions_.emplace(key, std::move(function)).second) {
      fail_input("function '{}' of domain '{}' is defined twice", proto.name(), proto.domain());
    }
  }
}

std::vector<OnnxNode> OnnxFlattener::flatten(
    GraphProto& graph, const Opsets& opsets,
    const std::function<bool(const std::string&)>& exists_outside) {
  std::vector<OnnxNode> nodes;
  nodes.reserve(static_cast<std::size_t>(graph.node_size()));
  for (auto& node : *graph.mutable_node()) expand(std::move(node), opsets, nodes);
  graph.clear_node();
  const NameSet given = given_names(graph);
  Sorter sorter(nodes, given, exists_outside);
  sorter.check_outputs(graph, given, exists_outside);
  sorter.sort();
  return nodes;
}

void OnnxFlattener::expand(NodeProto&& node, const Opsets& opsets, std::vector<OnnxNode>& nodes) {
  const auto found = functions_.find(
      function_key(node.domain(), node.op_type(), unknown_strings(node, kNodeOverloadField)));
  if (found != functions_.end()) {
    expand_call(node, found->second, nodes);
    return;
  }
  nodes.push_back({std::move(node), &opsets});
}

void OnnxFlattener::expand_call(const NodeProto& call, Function& function,
                                std::vector<OnnxNode>& nodes) {
  const onnx::FunctionProto& proto = *function.proto;
  if (function.active) {
    fail_input("{}: function '{}' calls itself", node_label(call), proto.name());
  }
  if (call.input_size() > proto.input_size() || call.output_size() > proto.output_size()) {
    fail_input("{}: has {} inputs and {} outputs; function '{}' takes {} and gives {}",
               node_label(call), call.input_size(), call.output_size(), proto.name(),
               proto.input_size(), proto.output_size());
  }
  inlined_ += proto.node_size();
  if (inlined_ > limits::kInlinedNodes) {
    fail_input("{}: its functions expand to more than {} nodes", node_label(call),
               limits::kInlinedNodes);
  }
  if (depth_ == limits::kFunctionDepth) {
    fail_input("{}: functions call each other more than {} deep", node_label(call),
               limits::kFunctionDepth);
  }
  ++depth_;
  function.active = true;
  const Renamer renamer(call, proto, function.defaults, calls_++);
  for (const NodeProto& original : proto.node()) {
    NodeProto node = original;
    renamer.apply(node);
    expand(std::move(node), function.opsets, nodes);
  }
  // An output that is an input handed through has no node of its own to carry the call's name.
  for (int i = 0; i < call.output_size(); ++i) {
    const std::string source = renamer.rename(proto.output(i));
    if (call.output(i).empty() || source == call.output(i)) continue;
    NodeProto identity;
    identity.set_op_type("Identity");
    identity.add_input(source);
    identity.add_output(call.output(i));
    nodes.push_back({std::move(identity), &function.opsets});
  }
  function.active = false;
  --depth_;
}

std::vector<std::string> values_read(const NodeProto& node) {
  std::vector<std::string> read;
  NameSet seen;
  for (const std::string& name : node.input()) {
    if (!name.empty() && seen.insert(name).second) read.push_back(name);
  }
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) append_captured(attribute.g(), seen, read);
    for (const auto& graph : attribute.graphs()) append_captured(graph, seen, read);
  }
  return read;
}

}  // namespace emplace
