#include "io/sharding_json.h"

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

}  // namespace emplace
