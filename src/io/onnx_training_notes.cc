#include "io/onnx_training_notes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/units.h"

#include "graph/tensor_type.h"

namespace emplace {
namespace {

constexpr const char* kHowToExport =
    "export it for training: torch.onnx.export(model.train(), ..., "
    "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False); docs/models.md has the "
    "calls of other frameworks";

bool is_normalisation(std::string_view type) {
  return type.find("Norm") != std::string_view::npos;
}

class ExportReader {
 public:
  explicit ExportReader(const Graph& graph) : graph_(graph) {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.role(op) == OpRole::kParameter) {
        named_ = named_ || !is_made_up(graph_.op_name(op));
      } else if (graph_.type(op) == "Conv" && graph_.inputs(op).size() >= 2) {
        convolutions_.push_back(op);
      }
    }
  }

  // Convolutions that batch norms were folded into.
  std::int64_t folded() const {
    std::int64_t certain = 0;
    for (const OpId op : convolutions_) certain += named_ && has_computed_weights(op) ? 1 : 0;
    if (certain > 0) return certain;
    return looks_folded() ? static_cast<std::int64_t>(convolutions_.size()) : 0;
  }

  struct Merged {
    std::int64_t initializers = 0;
    std::int64_t layers = 0;
    Bytes missing = 0;  // what separate ones would take in addition
  };
  Merged merged() const {
    Merged result;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.role(op) != OpRole::kParameter) continue;
      for (const TensorId tensor : graph_.outputs(op)) {
        const auto modules = static_cast<std::int64_t>(most_modules(tensor));
        if (modules < kShared) continue;
        if (is_matrix(tensor)) return {};
        ++result.initializers;
        result.layers += modules;
        result.missing += (modules - 1) * graph_.bytes(tensor);
      }
    }
    return result;
  }

 private:
  static constexpr std::int64_t kShared = 3;
  static constexpr std::size_t kDeep = 8;  // convolutions of a network that needs norms

  // "onnx::Conv_497", or "497" before PyTorch 1.12.
  static bool is_made_up(std::string_view name) {
    constexpr std::string_view kPrefix = "onnx::Conv_";
    if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
    return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
  }

  bool is_parameter(TensorId tensor) const {
    return graph_.role(graph_.producer(tensor)) == OpRole::kParameter;
  }

  bool has_bias(OpId conv) const {
    return graph_.inputs(conv).size() >= 3 && is_parameter(graph_.inputs(conv)[2]);
  }

  bool has_computed_weights(OpId conv) const {
    if (!has_bias(conv) || !is_parameter(graph_.inputs(conv)[1])) return false;
    const auto made_up = [&](std::size_t i) {
      return is_made_up(graph_.op_name(graph_.producer(graph_.inputs(conv)[i])));
    };
    return made_up(1) && made_up(2);
  }

  bool looks_folded() const {
    if (convolutions_.size() < kDeep) return false;
    std::size_t biased = 0;
    for (const OpId op : convolutions_) biased += has_bias(op) ? 1 : 0;
    if (biased < convolutions_.size()) return false;
    std::size_t branches = 0;
    bool pooled = false;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (is_normalisation(graph_.type(op)) || results_in_images(op)) return false;
      branches += adds_a_convolution(op) ? 1 : 0;
      pooled = pooled || pools_images(op);
    }
    return pooled && branches >= 2;
  }

  // Adds a convolution of images to something of the same shape that is computed.
  bool adds_a_convolution(OpId op) const {
    const auto inputs = graph_.inputs(op);
    if (graph_.type(op) != "Add" || inputs.size() != 2) return false;
    const auto a = graph_.shape(inputs[0]);
    const auto b = graph_.shape(inputs[1]);
    if (a.size() != 4 || !std::equal(a.begin(), a.end(), b.begin(), b.end())) return false;
    const OpId first = graph_.producer(inputs[0]);
    const OpId second = graph_.producer(inputs[1]);
    if (graph_.is_source(first) || graph_.is_source(second)) return false;
    return graph_.type(first) == "Conv" || graph_.type(second) == "Conv";
  }

  // All pixels become one, as before a classifier.
  bool pools_images(OpId op) const {
    if (graph_.inputs(op).empty() || graph_.outputs(op).empty()) return false;
    const std::string_view type = graph_.type(op);
    if (type != "GlobalAveragePool" && type != "ReduceMean" && type != "AveragePool") return false;
    const auto from = graph_.shape(graph_.inputs(op)[0]);
    const auto to = graph_.shape(graph_.outputs(op)[0]);
    return from.size() == 4 && from[2] * from[3] > 1 && count_elements(to) == from[0] * from[1];
  }

  // As networks for super-resolution do, which have no norms, and may pool to weigh channels.
  bool results_in_images(OpId op) const {
    if (graph_.is_source(op)) return false;
    const auto outputs = graph_.outputs(op);
    return std::any_of(outputs.begin(), outputs.end(), [&](TensorId tensor) {
      const auto shape = graph_.shape(tensor);
      return graph_.consumers(tensor).empty() && shape.size() == 4 && shape[2] * shape[3] > 1;
    });
  }

  bool is_matrix(TensorId tensor) const { return graph_.shape(tensor).size() > 1; }

  // The rows of a matrix, or the scale or bias of a layer; not what positions are made of, say.
  bool is_weight(OpId reader, std::size_t at, TensorId tensor) const {
    const std::string_view type = graph_.type(reader);
    if (is_matrix(tensor)) {
      return type == "MatMul" || type == "Gemm" || type == "Conv" || type == "Gather";
    }
    if (graph_.shape(tensor).size() != 1) return false;
    if (is_normalisation(type) || type == "Conv" || type == "Gemm") return at >= 1;
    if (type != "Add" && type != "Mul") return false;
    const auto other = graph_.shape(graph_.inputs(reader)[1 - at]);
    return other.size() > 1 && other.back() == graph_.shape(tensor)[0];
  }

  // Of all places that the tensor is a weight in, directly or as it is: modules with such a reader.
  std::size_t most_modules(TensorId tensor) const {
    std::map<std::pair<std::string_view, std::size_t>, std::set<std::string_view>> modules;
    std::vector<TensorId> names{tensor};
    for (std::size_t n = 0; n < names.size(); ++n) {
      for (const OpId reader : graph_.consumers(names[n])) {
        if (graph_.type(reader) == "Identity") {
          names.push_back(graph_.outputs(reader)[0]);
          continue;
        }
        if (graph_.module(reader).empty()) continue;
        const auto inputs = graph_.inputs(reader);
        const auto at = static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), names[n]) -
                                                 inputs.begin());
        if (!is_weight(reader, at, tensor)) continue;
        modules[{graph_.type(reader), at}].insert(graph_.module(reader));
      }
    }
    std::size_t most = 0;
    for (const auto& [place, names_there] : modules) most = std::max(most, names_there.size());
    return most;
  }

  const Graph& graph_;
  std::vector<OpId> convolutions_;
  bool named_ = false;  // some parameter has a name of its own
};

}  // namespace

std::vector<std::string> training_notes(const Graph& forward) {
  const ExportReader reader(forward);
  std::vector<std::string> notes;
  if (const std::int64_t folded = reader.folded(); folded > 0) {
    notes.push_back(fmt::format(
        "{} convolutions have batch norms folded into them, so training takes more memory and time "
        "than is said here; {}",
        format_count(folded), kHowToExport));
  }
  if (const auto merged = reader.merged(); merged.initializers > 0) {
    notes.push_back(fmt::format(
        "{} of the file's initializers are each the scale or bias of several layers, {} in all, as "
        "exporters merge equal ones: {} of parameters are missing, and so are their gradients and "
        "their optimizer's state; {}",
        format_count(merged.initializers), format_count(merged.layers),
        format_bytes(merged.missing), kHowToExport));
  }
  return notes;
}

}  // namespace emplace
