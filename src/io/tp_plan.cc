#include "io/tp_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"

#include "tensor/captured_operators.h"

#include "io/cut_dimension.h"
#include "io/json_layout.h"

namespace emplace {
namespace {

// The product that reads a weight, and what a cut of one of the weight's dimensions does to it.
struct Product {
  OpId op = 0;
  bool cuts_output = false;
  bool inputs_first = false;  // in the weight; nn.Linear's has its outputs first
};

// Follows the weight through transpositions; nothing where it goes elsewhere too, as a table that
// is both embedding and head does.
std::optional<Product> product_of(const Graph& graph, TensorId tensor, int dimension) {
  if (graph.shape(tensor).size() != 2) return std::nullopt;
  std::optional<Product> product;
  for (const OpId reader : graph.consumers(tensor)) {
    if (graph.phase(reader) != Phase::kForward) continue;
    if (product) return std::nullopt;
    const auto inputs = graph.inputs(reader);
    const std::string_view type = graph.type(reader);
    if (type == "Transpose") {
      product = product_of(graph, graph.outputs(reader)[0], 1 - dimension);
      if (product) product->inputs_first = !product->inputs_first;
    } else if (type == "MatMul" && inputs.size() > 1 && inputs[1] == tensor) {
      product = Product{reader, dimension == 1, true};
    } else if (type == "Gemm" && inputs.size() > 1 && inputs[1] == tensor) {
      const bool transposed = graph.attributes(reader).integer("transB", 0) != 0;
      product = Product{reader, (dimension == 1) != transposed, !transposed};
    }
    if (!product) return std::nullopt;
  }
  return product;
}

class TpPlan {
 public:
  TpPlan(Graph graph, const SavedPartition& partition, bool captured)
      : graph_(std::move(graph)), partition_(partition), captured_(captured) {
    for (const int factor : partition.factors) devices_ *= factor;
  }

  std::string write(const ExportNote& note) {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.role(op) == OpRole::kParameter && graph_.outputs(op).size() == 1) add_weight(op);
    }
    if (std::none_of(layers_.begin(), layers_.end(),
                     [](const Layer& layer) { return layer.style != Style::kReplicate; })) {
      fail_input(
          "the partition cuts no linear layer's weight: there is nothing for a tp_plan to say");
    }
    follow_activations();
    keep_whole_what_must_be();
    if (!others_.empty()) {
      note(fmt::format("weights that are cut and are not of linear layers are left whole: '{}'{}",
                       *others_.begin(), others_.size() > 1 ? " and others" : ""));
    }
    if (!inputs_first_.empty()) {
      note(
          fmt::format("weights have their inputs first here, '{}'{}: where the model's have so "
                      "too, as those of GPT-2's Conv1D, transformers cuts the wrong dimension",
                      *inputs_first_.begin(), inputs_first_.size() > 1 ? " and others" : ""));
    }
    note("a tp_plan says how weights are cut; how activations are cut follows from it");
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    bool whole = false;
    for (const Layer& layer : layers_) {
      if (layer.style == Style::kReplicate) continue;
      json[layer.pattern] = name_of(layer);
      whole |= layer.whole;
    }
    if (whole) {
      note(
          "colwise_gather_output and rowwise_split_input are names of transformers 5; version 4 "
          "calls them colwise_rep and rowwise_rep");
    }
    return laid_out(json, 1);
  }

 private:
  enum class Style { kReplicate, kColumns, kRows };

  // All modules of a pattern.
  struct Layer {
    std::string pattern = {};
    Style style = Style::kReplicate;
    std::string weight = {};
    bool whole = false;               // what comes out of columns, or goes into rows
    std::set<std::size_t> next = {};  // layers of rows that take what columns give
  };

  // What a tensor of the forward pass is made of.
  struct Origin {
    std::set<std::size_t> columns = {};  // layers whose cut outputs it has
    CutDimension cut = {};               // where it has them
    bool whole = false;                  // or what every device has all of
    std::optional<OpId> weight = {};     // or this parameter and nothing else
  };

  // As transformers calls them from its version 5 on.
  static std::string name_of(const Layer& layer) {
    switch (layer.style) {
      case Style::kColumns:
        return layer.whole ? "colwise_gather_output" : "colwise";
      case Style::kRows:
        return layer.whole ? "rowwise_split_input" : "rowwise";
      case Style::kReplicate:
        break;
    }
    return "replicate";
  }

  void add_weight(OpId op) {
    const std::string name(graph_.op_name(op));
    const SavedPartition::Tensor* tensor = partition_.find_tensor(name);
    const std::size_t dot = name.rfind('.');
    if (tensor == nullptr || tensor->shape.size() != 2 || dot == std::string::npos) return;
    std::optional<Product> product;
    Style style = Style::kReplicate;
    for (const auto& dimension : tensor->split) {
      if (!dimension) continue;
      product = product_of(graph_, graph_.outputs(op)[0], *dimension);
      if (!product || !name.ends_with(".weight")) {
        others_.insert(name);
        return;
      }
      if (product->inputs_first) take_inputs_first(name);
      const Style found = product->cuts_output ? Style::kColumns : Style::kRows;
      if (style != Style::kReplicate && found != style) {
        fail_input("parameter '{}' is cut in two ways; a tp_plan has one way a module", name);
      }
      style = found;
    }
    add_layer(pattern_of(name.substr(0, dot)), style, name, product);
  }

  void take_inputs_first(const std::string& name) {
    if (captured_) {
      fail_input(
          "parameter '{}' has its inputs first, as GPT-2's Conv1D; a tp_plan is for nn.Linear, "
          "which has its outputs first, and transformers would cut the wrong dimension",
          name);
    }
    inputs_first_.insert(name);
  }

  void add_layer(const std::string& pattern, Style style, const std::string& weight,
                 const std::optional<Product>& product) {
    const auto [at, added] = number_of_.try_emplace(pattern, layers_.size());
    if (added) layers_.push_back({.pattern = pattern, .style = style, .weight = weight});
    const Layer& layer = layers_[at->second];
    if (layer.style != style) {
      fail_input("'{}' is to be {} and '{}' {}; a tp_plan has one way for all of '{}'",
                 layer.weight, name_of(layer), weight, name_of({.style = style}), pattern);
    }
    if (product) layer_of_.emplace(product->op, at->second);
  }

  void follow_activations() {
    std::vector<Origin> origins(graph_.num_tensors());
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.phase(op) != Phase::kForward && !graph_.is_source(op)) continue;
      const Origin origin = graph_.is_source(op) ? origin_of_source(op) : follow(op, origins);
      for (const TensorId output : graph_.outputs(op)) origins[output] = origin;
    }
  }

  Origin origin_of_source(OpId op) const {
    if (graph_.role(op) == OpRole::kParameter) return {.weight = op};
    return {};  // masks and positions are cut as what they meet
  }

  Origin follow(OpId op, const std::vector<Origin>& origins) {
    if (const auto layer = layer_of_.find(op); layer != layer_of_.end()) {
      return through_layer(layer->second, graph_.inputs(op)[0], graph_.outputs(op)[0], origins);
    }
    if (graph_.type(op) == "Shape") return {};
    Origin all;
    std::optional<OpId> weight;
    bool activation = false;
    for (const TensorId input : graph_.inputs(op)) {
      const Origin& origin = origins[input];
      all.columns.insert(origin.columns.begin(), origin.columns.end());
      all.whole |= origin.whole;
      if (origin.weight) weight = origin.weight;
      activation |= !origin.weight;
    }
    if (weight && !activation) return {.weight = weight};
    // Normalisations, embeddings, layers that are not cut: they need all of what they read.
    if (weight && !is_bias_of(*weight, all)) return gathered(all);
    if (all.columns.empty()) return all;
    const std::optional<CutDimension> cut = cut_of_outputs(op, origins);
    if (!cut) return gathered(all);
    all.cut = *cut;
    return all;
  }

  // Nothing where a device cannot do its part alone.
  std::optional<CutDimension> cut_of_outputs(OpId op, const std::vector<Origin>& origins) const {
    std::optional<CutDimension> all;
    const auto inputs = graph_.inputs(op);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Origin& origin = origins[inputs[i]];
      if (origin.columns.empty()) continue;
      const auto cut = cut_after(graph_, op, i, origin.cut, devices_);
      if (!cut || (all && *all != *cut)) return std::nullopt;
      all = cut;
    }
    return all;
  }

  Origin gathered(const Origin& read) {
    for (const std::size_t column : read.columns) layers_[column].whole = true;
    return {.whole = true};
  }

  Origin through_layer(std::size_t number, TensorId input, TensorId output,
                       const std::vector<Origin>& origins) {
    Layer& layer = layers_[number];
    const Origin& read = origins[input];
    if (layer.style == Style::kColumns) {
      gathered(read);
      return {.columns = {number}, .cut = last_dimension(output)};
    }
    layer.whole |= read.columns.empty() || read.whole || read.cut != last_dimension(input);
    for (const std::size_t column : read.columns) layers_[column].next.insert(number);
    return {.whole = true};
  }

  CutDimension last_dimension(TensorId tensor) const {
    return {.dimension = static_cast<int>(graph_.shape(tensor).size()) - 1};
  }

  bool is_bias_of(OpId weight, const Origin& origin) const {
    const std::string name(graph_.op_name(weight));
    const std::string pattern = pattern_of(name.substr(0, std::min(name.rfind('.'), name.size())));
    return !origin.whole && origin.columns.size() == 1 &&
           layers_[*origin.columns.begin()].pattern == pattern;
  }

  // Rows take cut outputs only where all that they read is cut, and columns give them only where
  // rows alone read them.
  void keep_whole_what_must_be() {
    for (Layer& layer : layers_) {
      if (layer.style == Style::kColumns) layer.whole |= layer.next.empty();
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (Layer& columns : layers_) {
        for (const std::size_t next : columns.next) {
          if (columns.whole == layers_[next].whole) continue;
          columns.whole = layers_[next].whole = changed = true;
        }
      }
    }
  }

  Graph graph_;
  const SavedPartition& partition_;
  bool captured_;
  std::int64_t devices_ = 1;
  std::vector<Layer> layers_;
  std::map<std::string, std::size_t> number_of_;
  std::unordered_map<OpId, std::size_t> layer_of_;  // by product
  std::set<std::string> others_;
  std::set<std::string> inputs_first_;
};

}  // namespace

std::string write_tp_plan(const Graph& graph, const SavedPartition& partition,
                          const ExportNote& note) {
  // What was captured from PyTorch has its operators, which are followed as ONNX's, and its weights
  // as the model has them.
  bool captured = false;
  for (OpId op = 0; op < graph.num_ops() && !captured; ++op) {
    captured = !graph.is_source(op) && is_captured_operator(graph.type(op));
  }
  return TpPlan(translate_captured(graph).graph, partition, captured).write(note);
}

std::string pattern_of(const std::string& path) {
  std::string pattern;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    if (begin > 0) pattern += '.';
    pattern += number ? "*" : part;
    begin = end + 1;
  }
  return pattern;
}

}  // namespace emplace
