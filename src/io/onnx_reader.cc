// ONNX models: one op for each node, initializer and input.
//
// Two passes. OnnxWalk goes through the nodes and finds shapes and costs; where some stay unknown,
// all of them are reported in one message, by reason. Only then are the ops built, from what was
// kept of each node. Names of inputs and initializers are taken first, since placements refer to
// them; a node whose name is missing or taken is called after its type and first output. An
// initializer's op stands just before its first reader. Expected time is linear in the model.
#include <climits>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/defs/schema.h>

#include "base/error.h"

#include "graph/graph_builder.h"

#include "io/onnx_conventions.h"
#include "io/onnx_flat_model.h"
#include "io/onnx_flatten.h"
#include "io/onnx_functions.h"
#include "io/onnx_inputs.h"
#include "io/onnx_meaning.h"
#include "io/onnx_node.h"
#include "io/onnx_shapes.h"
#include "io/onnx_walk.h"
#include "io/readers.h"

namespace emplace {
namespace {

onnx::ModelProto parse_model(const std::string& bytes) {
  if (bytes.size() > INT_MAX) {
    fail_input("an ONNX file of more than 2 GiB cannot be read; save its weights as external data");
  }
  const google::protobuf::LogSilencer silencer;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(INT_MAX);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    fail_input("is not an ONNX model, or is cut short: its protobuf message cannot be parsed");
  }
  if (!model.has_graph()) fail_input("is not an ONNX model: it has no graph");
  return model;
}

// ONNX names need not be there, nor be unique; those of ops must.
class OpNames {
 public:
  std::string take(const std::string& wanted, const std::string& instead) {
    if (!wanted.empty() && used_.insert(wanted).second) return wanted;
    if (!instead.empty() && used_.insert(instead).second) return instead;
    const std::string& stem = wanted.empty() ? instead : wanted;
    while (true) {
      std::string name = fmt::format("{}#{}", stem, ++next_[stem]);
      if (used_.insert(name).second) return name;
    }
  }

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, std::int64_t> next_;
};

// Weights, in the precisions that weights have; other numbers that a model carries are constants.
bool is_weight(const OnnxValue& value) {
  if (value.shape.empty()) return false;
  switch (value.dtype) {
    case DType::kFloat8:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kInt8:
    case DType::kUInt8:
      return true;
    default:
      return false;
  }
}

// A constant's contents become its attribute "value": a number of a scalar, else a list, row by
// row.
void keep_contents(const std::optional<SmallTensor>& data, Attributes& attributes) {
  if (!data) return;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  for (std::size_t i = 0; i < data->values.size(); ++i) {
    if (std::isnan(data->values[i])) return;
    integers.push_back(data->integer(i));
    reals.push_back(static_cast<double>(data->values[i]));
  }
  if (data->is_integral()) {
    if (!data->dims.empty()) return attributes.set("value", integers);
    return attributes.set("value", integers.at(0));
  }
  if (!data->dims.empty()) return attributes.set("value", reals);
  attributes.set("value", reals.at(0));
}

// Positions that are left out, but for those at the end, are an attribute: a graph's op lists only
// what there is.
template <class IsThere>
void keep_omitted(int count, const std::string& attribute, Attributes& attributes,
                  IsThere is_there) {
  std::vector<std::int64_t> gaps;
  std::vector<std::int64_t> waiting;
  for (int i = 0; i < count; ++i) {
    if (!is_there(i)) {
      waiting.push_back(i);
      continue;
    }
    gaps.insert(gaps.end(), waiting.begin(), waiting.end());
    waiting.clear();
  }
  if (!gaps.empty()) attributes.set(attribute, std::move(gaps));
}

// A node of a function goes by the function's opsets; among the model's own nodes it must mean the
// same.
void check_opsets(const OnnxNode& node, const Opsets& model) {
  const std::string domain(canonical_domain(node.proto.domain()));
  const auto own = node.opsets->find(domain);
  const auto other = model.find(domain);
  if (own == node.opsets->end() || other == model.end() || own->second == other->second) return;
  const auto* meant =
      onnx::OpSchemaRegistry::Schema(node.proto.op_type(), own->second, node.proto.domain());
  const auto* read =
      onnx::OpSchemaRegistry::Schema(node.proto.op_type(), other->second, node.proto.domain());
  if (meant != nullptr && read != nullptr && meant->SinceVersion() == read->SinceVersion()) return;
  fail_input(
      "{}: is of a function with opset {} of '{}', where {} differs from opset {}, the "
      "model's",
      node_label(node.proto), own->second, domain.empty() ? "ai.onnx" : domain,
      node.proto.op_type(), other->second);
}

// What is not known, as one message: every op with a reason of its own, by reason, and how many
// others are not known because of those.
class UnknownOps {
 public:
  void add(const VisitedNode& visited) {
    const std::string name = node_label(visited.node.proto);
    if (!visited.root) {
      if (followers_.size() < kShown) followers_.push_back(name);
      ++num_followers_;
      return;
    }
    const std::string reason =
        fmt::format("{}: {}", operator_name(visited.node.proto), visited.unknown);
    const auto [at, added] = index_.try_emplace(reason, roots_.size());
    if (added) roots_.push_back({reason, {}});
    roots_[at->second].second.push_back(name);
    ++num_roots_;
  }

  bool empty() const { return num_roots_ == 0 && num_followers_ == 0; }

  [[noreturn]] void report() const {
    std::string text = fmt::format("the cost of {} ops is not known", num_roots_ + num_followers_);
    for (const auto& [reason, names] : roots_) {
      text += fmt::format("\n  {}: {}", reason, fmt::join(names, ", "));
    }
    if (num_followers_ > 0) {
      text += fmt::format("\n  and what depends on these: {}", fmt::join(followers_, ", "));
      if (num_followers_ > followers_.size()) {
        text += fmt::format(" and {} more", num_followers_ - followers_.size());
      }
    }
    throw Error(ErrorKind::kInput, text);
  }

 private:
  static constexpr std::size_t kShown = 20;

  std::vector<std::pair<std::string, std::vector<std::string>>> roots_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<std::string> followers_;
  std::size_t num_roots_ = 0;
  std::size_t num_followers_ = 0;
};

class Reader {
 public:
  Reader(onnx::ModelProto model, const std::string& name)
      : model_(std::move(model)),
        graph_(*model_.mutable_graph()),
        flattener_(model_),
        builder_(name.empty() ? graph_.name() : name, source_of(model_)) {}

  Graph read() {
    note_initializers();
    OnnxWalk(flattener_)
        .walk(graph_, flattener_.model_opsets(), scope_, nullptr,
              [this](const VisitedNode& visited) { nodes_.push_back(keep(visited)); });
    if (!unknown_.empty()) unknown_.report();
    reserve_names();
    add_inputs();
    for (const Pending& node : nodes_) add_node(node);
    // An initializer that no node reads is still part of the model.
    for (const std::string& name : initializers_) tensor_of(name);
    return std::move(builder_).build();
  }

  // The nodes, with the names that their ops have, instead of the graph.
  FlatOnnxModel read_nodes() && {
    note_initializers();
    FlatOnnxModel flat;
    OnnxWalk(flattener_)
        .walk(graph_, flattener_.model_opsets(), scope_, nullptr, [&](const VisitedNode& visited) {
          nodes_.push_back(keep(visited));
          check_opsets(visited.node, flattener_.model_opsets());
          flat.nodes.push_back({.proto = visited.node.proto, .op = {}});
        });
    if (!unknown_.empty()) unknown_.report();
    reserve_names();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      flat.nodes[i].op = take_name(nodes_[i]);
      for (const std::string& name : nodes_[i].outputs) flat.types[name] = scope_.find(name)->type;
    }
    for (const auto& value : graph_.input()) {
      flat.types[value.name()] = scope_.find(value.name())->type;
    }
    for (const std::string& name : initializers_) flat.types[name] = scope_.find(name)->type;
    flat.model.Swap(&model_);
    return flat;
  }

 private:
  // A node, with what the walk found of it.
  struct Pending {
    std::string name;
    std::string type;
    std::string module;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;  // those that are known
    OpCost cost;
    Attributes attributes;
  };

  static std::string source_of(const onnx::ModelProto& model) {
    if (model.producer_name().empty()) return "ONNX";
    if (model.producer_version().empty()) return fmt::format("ONNX, {}", model.producer_name());
    return fmt::format("ONNX, {} {}", model.producer_name(), model.producer_version());
  }

  void note_initializers() {
    for (const auto& tensor : graph_.initializer()) {
      note_initializer(tensor.name());
      if (!tensor.doc_string().empty()) notes_[tensor.name()] = tensor.doc_string();
    }
    for (const auto& sparse : graph_.sparse_initializer()) {
      note_initializer(sparse.values().name());
      sparse_bytes_[sparse.values().name()] = saturating_add(
          tensor_bytes(Shape(sparse.values().dims().begin(), sparse.values().dims().end()),
                       onnx_dtype(sparse.values().data_type())),
          tensor_bytes(Shape(sparse.indices().dims().begin(), sparse.indices().dims().end()),
                       DType::kInt64));
    }
  }
  void note_initializer(const std::string& name) {
    if (!initializer_set_.insert(name).second) fail_input("initializer '{}' occurs twice", name);
    initializers_.push_back(name);
  }

  Pending keep(const VisitedNode& visited) {
    const onnx::NodeProto& proto = visited.node.proto;
    if (!visited.unknown.empty()) {
      unknown_.add(visited);
      return {};
    }
    Pending node{.name = proto.name(),
                 .type = proto.op_type() == "Constant" ? "constant" : proto.op_type(),
                 .module = module_of_node(proto),
                 .inputs = inputs_of(proto),
                 .outputs = {},
                 .cost = visited.cost,
                 .attributes = attributes_of_op(visited)};
    const auto is_known = [&](int i) {
      const OnnxValue* value = visited.outputs[static_cast<std::size_t>(i)];
      return value != nullptr && value->known;
    };
    for (int i = 0; i < proto.output_size(); ++i) {
      if (is_known(i)) node.outputs.push_back(proto.output(i));
    }
    keep_omitted(proto.input_size(), std::string(kOmittedInputs), node.attributes,
                 [&](int i) { return !proto.input(i).empty(); });
    keep_omitted(proto.output_size(), std::string(kOmittedOutputs), node.attributes, is_known);
    return node;
  }

  // As the node lists them, a value that is read twice being there twice, then what its bodies
  // read.
  static std::vector<std::string> inputs_of(const onnx::NodeProto& proto) {
    std::vector<std::string> inputs;
    std::unordered_set<std::string_view> listed;
    for (const std::string& name : proto.input()) {
      if (name.empty()) continue;
      inputs.push_back(name);
      listed.insert(name);
    }
    for (std::string& name : values_read(proto)) {
      if (!listed.contains(name)) inputs.push_back(std::move(name));
    }
    return inputs;
  }

  static Attributes attributes_of_op(const VisitedNode& visited) {
    const onnx::NodeProto& proto = visited.node.proto;
    Attributes attributes = attributes_of(proto);
    say_meaning(visited, attributes);
    if (proto.op_type() == "Constant") {
      Attributes contents;
      for (const char* name : {"value_float", "value_floats"}) {
        if (const AttributeValue* value = attributes.find(name)) contents.set("value", *value);
      }
      if (visited.outputs[0] != nullptr) keep_contents(visited.outputs[0]->data, contents);
      return contents;
    }
    const auto* fill =
        proto.op_type() == "ConstantOfShape" ? find_attribute(proto, "value") : nullptr;
    if (fill != nullptr && fill->has_t()) {
      const auto data = parse_small_tensor(fill->t());
      keep_contents(data, attributes);
      // Which no number of an attribute is.
      const bool nan = data && data->values.size() == 1 && std::isnan(data->values[0]);
      if (nan) attributes.set("value", "nan");
    }
    return attributes;
  }

  // Initializers and inputs keep their names, whatever the nodes are called.
  void reserve_names() {
    for (const std::string& name : initializers_) names_.take(name, {});
    for (const auto& value : graph_.input()) {
      if (!initializer_set_.contains(value.name())) names_.take(value.name(), {});
    }
  }

  void add_inputs() {
    for (const auto& value : graph_.input()) {
      if (initializer_set_.contains(value.name())) continue;
      add_source(value.name(), "input", {}, *scope_.find(value.name()));
    }
  }

  TensorId add_source(const std::string& name, const std::string& type, const std::string& module,
                      const OnnxValue& value) {
    OpSpec op{.name = name, .type = type, .module = module};
    if (type == "constant") keep_contents(value.data, op.attributes);
    return with_context(fmt::format("op '{}'", name), [&] {
      const auto tensors = builder_.add(op, {spec(name, value)});
      return tensors_[name] = tensors[0];
    });
  }

  // Our own files say which initializers are parameters and which are buffers.
  std::string type_of_initializer(const std::string& name, const OnnxValue& value) const {
    const auto note = notes_.find(name);
    if (note != notes_.end() && (note->second == kParameterNote || note->second == kBufferNote)) {
      return note->second == kBufferNote ? "buffer" : "parameter";
    }
    return is_weight(value) ? "parameter" : "constant";
  }

  // The tensor of a value's name. An initializer's op is added here, just before its first reader:
  // ops with neighbouring numbers then belong together, which several placers build on.
  TensorId tensor_of(const std::string& name) {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) return found->second;
    const OnnxValue& value = *scope_.find(name);
    return add_source(name, type_of_initializer(name, value), module_of_initializer(name), value);
  }

  TensorSpec spec(const std::string& name, const OnnxValue& value) const {
    const auto sparse = sparse_bytes_.find(name);
    if (sparse != sparse_bytes_.end()) return {.bytes = sparse->second};
    if (value.dtype == DType::kUnknown) return {.bytes = value.bytes};
    return {.shape = value.shape, .dtype = value.dtype};
  }

  std::string take_name(const Pending& node) {
    const std::string first = node.outputs.empty() ? std::string() : node.outputs[0];
    return names_.take(node.name, fmt::format("{}:{}", node.type, first));
  }

  void add_node(const Pending& node) {
    OpSpec op{.name = take_name(node),
              .type = node.type,
              .flops = node.cost.flops,
              .bytes_moved = node.cost.bytes_moved,
              .persistent_bytes = node.cost.persistent_bytes,
              .temp_bytes = node.cost.temp_bytes,
              .view = node.cost.view,
              .module = node.module,
              .attributes = node.attributes};
    for (const std::string& name : node.inputs) op.inputs.push_back(tensor_of(name));
    std::vector<TensorSpec> outputs;
    for (const std::string& name : node.outputs) outputs.push_back(spec(name, *scope_.find(name)));
    with_context(fmt::format("op '{}'", op.name), [&] {
      const auto tensors = builder_.add(op, outputs);
      for (std::size_t i = 0; i < tensors.size(); ++i) tensors_[node.outputs[i]] = tensors[i];
    });
  }

  onnx::ModelProto model_;
  onnx::GraphProto& graph_;
  OnnxFlattener flattener_;
  GraphBuilder builder_;
  OnnxScope scope_;
  std::vector<std::string> initializers_;
  std::unordered_set<std::string> initializer_set_;
  std::unordered_map<std::string, std::string> notes_;  // initializers' doc_strings
  std::unordered_map<std::string, Bytes> sparse_bytes_;
  std::vector<Pending> nodes_;
  UnknownOps unknown_;
  OpNames names_;
  std::unordered_map<std::string, TensorId> tensors_;
};

}  // namespace

Graph read_onnx(const std::string& bytes, const ReadOptions& options, const std::string& name) {
  onnx::ModelProto model = parse_model(bytes);
  restore_operators(model);
  set_symbolic_dims(model, options.dims);
  return Reader(std::move(model), name).read();
}

FlatOnnxModel read_flat_onnx(const std::string& bytes, const ReadOptions& options) {
  onnx::ModelProto model = parse_model(bytes);
  const onnx::ModelProto given = model;
  restore_operators(model);
  // What stands for an operator that is newer than the opset stays a call when it is written again.
  std::unordered_map<std::string, const onnx::NodeProto*> calls;
  for (int i = 0; i < given.graph().node_size(); ++i) {
    const onnx::NodeProto& node = given.graph().node(i);
    if (node.domain() != model.graph().node(i).domain()) calls[node.output(0)] = &node;
  }
  set_symbolic_dims(model, options.dims);
  FlatOnnxModel flat = Reader(std::move(model), {}).read_nodes();
  for (FlatOnnxNode& node : flat.nodes) {
    if (node.proto.output_size() == 0) continue;
    const auto call = calls.find(node.proto.output(0));
    if (call != calls.end()) node.proto = *call->second;
  }
  return flat;
}

std::vector<OnnxInput> read_onnx_inputs(const std::string& bytes) {
  const onnx::ModelProto model = parse_model(bytes);
  std::unordered_set<std::string> initializers;
  for (const auto& tensor : model.graph().initializer()) initializers.insert(tensor.name());
  std::vector<OnnxInput> inputs;
  for (const auto& value : model.graph().input()) {
    if (initializers.contains(value.name())) continue;
    const auto& type = value.type().tensor_type();
    OnnxInput input{.name = value.name(), .dtype = onnx_dtype(type.elem_type())};
    for (const auto& dim : type.shape().dim()) {
      if (dim.has_dim_value()) {
        input.shape.push_back({.size = dim.dim_value()});
      } else {
        input.shape.push_back({.size = std::nullopt, .symbol = dim.dim_param()});
      }
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace emplace
