// Models in: read from files, taken from the zoo, or built in code.
//
// A model's step is a Graph: ops that produce and consume tensors, immutable, shared by all who use
// it, and valid by construction (ops in topological order, unique names, one producer a tensor).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emplace/search.h>
#include <emplace/types.h>

namespace emplace {

class Graph;
class Cluster;

enum class Optimizer {
  kSgd,       // no state
  kMomentum,  // one number for each weight
  kAdam,      // two
};

struct TrainingOptions {
  Optimizer optimizer = Optimizer::kSgd;
  // Gradient ops stay with the forward op that they belong to, as one placement decision.
  bool colocate_gradients = false;
  // Modules (or patterns of them, "encoder.layer.*") whose activations are not kept for the
  // backward pass: it computes them again from the module's inputs (Chen et al. 2016, "Training
  // Deep Nets with Sublinear Memory Cost"). Each module that matches is one segment.
  std::vector<std::string> recompute = {};
};

// Of a model's floating tensors.
enum class Precision {
  kAsGiven,  // as the file, or the model of the zoo, has them
  kFloat32,
  kFloat16,
  kBFloat16,
};

struct ReadOptions {
  std::map<std::string, std::int64_t, std::less<>> dims = {};  // ONNX: symbolic dimensions
  // A file's forward graph becomes its training step; a zoo model is built with training=true.
  bool training = false;
  // Of that step, and of a zoo model that is one by itself.
  TrainingOptions training_options = {};
  // Its optimizer was chosen, and so replaces a zoo model's own.
  bool optimizer_chosen = false;
  // A training step in 16 bits is mixed: products in 16 bits, normalisations and losses in float32,
  // float32 masters of 16-bit weights. A forward pass is of that precision throughout.
  Precision precision = Precision::kAsGiven;
};

struct Model {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster = nullptr;  // where the file brings one
  std::vector<std::string> notes = {};               // what its user should know
};

// A file, by content, not by name: emplace.graph/1, ONNX, dnn-partitioning or PipeDream, each also
// gzipped; or a name that is built: "zoo:resnet-50:batch=64", "family:ptb:seed=3". Errors name the
// file or the model.
Model read_model(const std::string& path_or_name, const ReadOptions& options = {});

// A tensor that an op writes: either shape and dtype ("float32", by PyTorch's names), or bytes.
struct TensorDescription {
  std::vector<std::int64_t> shape = {};
  std::string dtype = "float32";
  std::optional<Bytes> bytes = std::nullopt;
};

// The `output`-th tensor that op `op`, by its place in the description, writes.
struct TensorReference {
  OpId op = 0;
  std::uint32_t output = 0;
};

struct OpDescription {
  std::string name;
  std::string type;  // "input", "parameter", "buffer", "constant", or any operator's name
  std::vector<TensorReference> inputs = {};
  std::vector<TensorDescription> outputs = {};
  std::string phase = "forward";  // or backward, update
  std::string module = {};
  std::optional<std::int64_t> flops = std::nullopt;
  // Measured, by a device's name or kind.
  std::map<std::string, double> time_us = {};
  Bytes persistent_bytes = 0;             // held for the whole step, e.g. an optimizer's state
  std::string colocate = {};              // ops of one name share a device
  std::vector<std::string> devices = {};  // names or kinds that it may use; empty: any
};

// Ops in topological order. Throws an Error that names the op and the field.
std::shared_ptr<const Graph> build_graph(const std::string& name,
                                         const std::vector<OpDescription>& ops);

// What there is in a graph.
struct GraphSummary {
  std::string name;
  OpId ops = 0;
  TensorId tensors = 0;
  std::int64_t parameters = 0;  // numbers that are trained
  std::int64_t flops = 0;       // of a step, as far as they are known
  bool training = false;        // has a backward pass
};
GraphSummary summarize(const Graph& graph);

struct OpView {
  std::string name;
  std::string type;
  std::string phase;
  std::string module;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
};
OpView op_of(const Graph& graph, OpId op);

struct TensorView {
  OpId producer = 0;
  std::vector<OpId> consumers;
  std::vector<std::int64_t> shape;
  std::string dtype;  // empty where only its size is known
  Bytes bytes = 0;
};
TensorView tensor_of(const Graph& graph, TensorId tensor);

// emplace.graph/1.
std::string graph_json(const Graph& graph);

// The models that "zoo:NAME" and "family:NAME" name.
struct ZooModel {
  std::string name;  // as it is used: "zoo:bert-base", "family:ptb"
  std::string summary;
  std::string source;                                     // the paper
  std::optional<std::int64_t> parameters = std::nullopt;  // as published
  std::vector<OptionInfo> options = {};
};
std::vector<ZooModel> zoo_models();

}  // namespace emplace
