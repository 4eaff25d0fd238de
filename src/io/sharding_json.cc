#include "io/sharding_json.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"

#include "io/json_layout.h"

namespace emplace {
namespace {

using ShardingJson = nlohmann::ordered_json;

std::string axis_name(std::size_t level) {
  return fmt::format("level{}", level);
}

ShardingJson mesh_of(const SavedPartition& partition) {
  ShardingJson names = ShardingJson::array();
  for (std::size_t level = 0; level < partition.factors.size(); ++level) {
    names.push_back(axis_name(level));
  }
  return {{"shape", partition.factors}, {"axes", names}, {"devices", partition.devices}};
}

// Hands every parameter, buffer and input that the partition knows to `visit`, in the graph's
// order.
template <class Visit>
void for_each_source(const Graph& graph, const SavedPartition& partition, const ExportNote& note,
                     const Visit& visit) {
  std::size_t unknown = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!graph.is_source(op) || graph.role(op) == OpRole::kConstant) continue;
    const std::string name(graph.op_name(op));
    const SavedPartition::Tensor* tensor = partition.find_tensor(name);
    if (tensor == nullptr) {
      ++unknown;
      continue;
    }
    visit(op, name, *tensor);
  }
  if (unknown > 0) {
    note(
        fmt::format("the partition says nothing of {} of the model's weights and inputs", unknown));
  }
  note(
      "intermediate tensors are left to the runtime, which may cut them otherwise than the "
      "partition does; parts are of equal size");
}

// "model.layers.3.mlp.up_proj" -> "model.layers.*.mlp.up_proj".
std::string numberless(const std::string& path) {
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

// What a cut of a weight's dimension does to the product that reads it.
enum class ProductCut { kOutput, kInput };

// Follows the weight through transpositions to the product; nothing where it goes elsewhere.
std::optional<ProductCut> cut_of_product(const Graph& graph, TensorId tensor, int dimension) {
  for (const OpId reader : graph.consumers(tensor)) {
    if (graph.phase(reader) != Phase::kForward) continue;
    const auto inputs = graph.inputs(reader);
    const auto rank = static_cast<int>(graph.shape(tensor).size());
    if (rank != 2) return std::nullopt;
    const std::string_view type = graph.type(reader);
    if (type == "Transpose" || type == "aten.t" || type == "t") {
      return cut_of_product(graph, graph.outputs(reader)[0], 1 - dimension);
    }
    if (inputs.size() < 2) continue;
    if (type == "MatMul" && inputs[1] == tensor) {
      return dimension == 1 ? ProductCut::kOutput : ProductCut::kInput;
    }
    if (type == "Gemm" && inputs[1] == tensor) {
      const bool transposed = graph.attributes(reader).integer("transB", 0) != 0;
      return (dimension == 1) != transposed ? ProductCut::kOutput : ProductCut::kInput;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string write_dtensor_plan(const Graph& graph, const SavedPartition& partition,
                               const ExportNote& note) {
  ShardingJson json{{"format", "emplace.dtensor/1"}, {"mesh", mesh_of(partition)}};
  json["parameters"] = ShardingJson::object();
  json["inputs"] = ShardingJson::object();
  for_each_source(graph, partition, note,
                  [&](OpId op, const std::string& name, const SavedPartition::Tensor& tensor) {
                    ShardingJson placements = ShardingJson::array();
                    for (const auto& dimension : tensor.split) {
                      placements.push_back(dimension ? ShardingJson{{"shard", *dimension}}
                                                     : ShardingJson("replicate"));
                    }
                    const bool input = graph.role(op) == OpRole::kInput;
                    json[input ? "inputs" : "parameters"][name] = {{"shape", tensor.shape},
                                                                   {"placements", placements}};
                  });
  return laid_out(json, 2);
}

std::string write_partition_specs(const Graph& graph, const SavedPartition& partition,
                                  const ExportNote& note) {
  ShardingJson json{{"format", "emplace.partition_specs/1"}, {"mesh", mesh_of(partition)}};
  json["specs"] = ShardingJson::object();
  std::vector<std::string> uneven;
  for_each_source(
      graph, partition, note,
      [&](OpId, const std::string& name, const SavedPartition::Tensor& tensor) {
        ShardingJson spec = ShardingJson::array();
        for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
          ShardingJson levels = ShardingJson::array();
          std::int64_t parts = 1;
          for (std::size_t level = 0; level < tensor.split.size(); ++level) {
            if (tensor.split[level] == static_cast<int>(axis)) {
              levels.push_back(axis_name(level));
              parts *= partition.factors[level];
            }
          }
          if (tensor.shape[axis] % parts != 0) {
            uneven.push_back(fmt::format("'{}' ({} in {})", name, tensor.shape[axis], parts));
          }
          spec.push_back(levels.empty() ? ShardingJson() : levels);
        }
        json["specs"][name] = std::move(spec);
      });
  if (!uneven.empty()) {
    note(fmt::format("JAX takes no parts of unequal size, as those of {}{}", uneven.front(),
                     uneven.size() > 1 ? fmt::format(" and {} more", uneven.size() - 1) : ""));
  }
  return laid_out(json, 2);
}

std::string write_tp_plan(const Graph& graph, const SavedPartition& partition,
                          const ExportNote& note) {
  std::map<std::string, std::pair<std::string, std::string>> plan;  // pattern: style, a weight
  std::vector<std::string> order;
  std::set<std::string> others;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.role(op) != OpRole::kParameter || graph.outputs(op).size() != 1) continue;
    const std::string name(graph.op_name(op));
    const SavedPartition::Tensor* tensor = partition.find_tensor(name);
    const std::size_t dot = name.rfind('.');
    if (tensor == nullptr || tensor->shape.size() != 2 || dot == std::string::npos) continue;
    std::string style = "replicate";
    for (const auto& dimension : tensor->split) {
      const auto cut =
          dimension ? cut_of_product(graph, graph.outputs(op)[0], *dimension) : std::nullopt;
      const std::string found = !dimension                    ? style
                                : !cut                        ? "other"
                                : *cut == ProductCut::kOutput ? "colwise"
                                                              : "rowwise";
      if (style != "replicate" && found != style) {
        fail_input("parameter '{}' is cut in two ways; a tp_plan has one way a module", name);
      }
      style = found;
    }
    if (style == "other") others.insert(name);
    if (style == "other" || !name.ends_with(".weight")) continue;
    const std::string pattern = numberless(name.substr(0, dot));
    const auto [at, added] = plan.try_emplace(pattern, style, name);
    if (added) order.push_back(pattern);
    if (at->second.first != style) {
      fail_input("'{}' is to be {} and '{}' {}; a tp_plan has one way for all of '{}'",
                 at->second.second, at->second.first, name, style, pattern);
    }
  }
  ShardingJson json = ShardingJson::object();
  for (const std::string& pattern : order) {
    const std::string& style = plan.at(pattern).first;
    if (style != "replicate") json[pattern] = style;
  }
  if (json.empty()) {
    fail_input(
        "the partition cuts no linear layer's weight: there is nothing for a tp_plan to say");
  }
  if (!others.empty()) {
    note(fmt::format("weights that are cut and are not of linear layers are left whole: '{}'{}",
                     *others.begin(), others.size() > 1 ? " and others" : ""));
  }
  note("a tp_plan says how weights are cut; how activations are cut follows from it");
  return laid_out(json, 1);
}

}  // namespace emplace
