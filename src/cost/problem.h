// A graph on a cluster with every duration known: what placers optimise and the simulator runs.
// Built once by `compile`, checked once, never changed, shared by all threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/problem.h>

#include "base/ids.h"
#include "base/units.h"

#include "cluster/cluster.h"
#include "graph/colocation.h"
#include "graph/graph.h"
#include "graph/in_place.h"
#include "graph/nodes.h"

#include "cost/cost_source.h"
#include "cost/device_rules.h"

namespace emplace {

// How much of the ops' time comes from one source, averaged over devices.
struct CostOrigin {
  std::string source;
  std::int64_t ops = 0;  // once for each kind of device
  double share = 0;      // of the total time, 0..1; shares of all sources add up to 1
};

class Problem {
 public:
  const Graph& graph() const { return *graph_; }
  const Cluster& cluster() const { return *cluster_; }
  OpId num_ops() const { return graph_->num_ops(); }
  DeviceId num_devices() const { return cluster_->num_devices(); }

  Nanoseconds duration(OpId op, DeviceId device) const {
    return durations_[static_cast<std::size_t>(column_of_[device]) * num_ops() + op];
  }
  // Over all devices that the op may use.
  Nanoseconds fastest_duration(OpId op) const { return fastest_[op]; }
  Nanoseconds mean_duration(OpId op) const { return mean_[op]; }

  // 0 on one device; kNoLink where there is no link.
  static constexpr Nanoseconds kNoLink = -1;
  Nanoseconds transfer_time(TensorId tensor, DeviceId from, DeviceId to) const;
  // Over all ordered pairs that have a link; 0 with one device.
  Nanoseconds mean_transfer_time(TensorId tensor) const;

  // What the simulator runs, and orders are about.
  const Nodes& nodes() const { return nodes_; }

  // Ops that must share a device, and the devices that a group may use (never none).
  const Colocation& colocation() const { return colocation_; }
  GroupId num_groups() const { return colocation_.num_groups(); }
  GroupId group_of(OpId op) const { return colocation_.group_of[op]; }
  std::span<const OpId> group_ops(GroupId group) const { return colocation_.ops[group]; }
  std::span<const DeviceId> allowed_devices(GroupId group) const {
    return device_sets_[device_set_of_[group]];
  }
  bool allowed(GroupId group, DeviceId device) const;

  // Memory that the op holds for the whole step wherever it is placed: persistent_bytes, and the
  // outputs of a parameter or buffer.
  Bytes resident_bytes(OpId op) const { return resident_[op]; }
  Bytes group_resident_bytes(GroupId group) const { return group_resident_[group]; }

  // The input that the op's result takes the place of, or kNotOverwritten; and how many bytes that
  // spares while the op runs.
  TensorId overwritten(OpId op) const { return overwritten_[op]; }
  Bytes overwritten_bytes(OpId op) const {
    return overwritten_[op] == kNotOverwritten ? 0 : graph_->memory_bytes(overwritten_[op]);
  }

  // By source, in the order in which they were asked.
  const std::vector<CostOrigin>& cost_origins() const { return origins_; }
  // Of one source; nothing of one that was not asked.
  CostOrigin cost_origin(std::string_view source) const;

  // How it was compiled.
  const CompileOptions& compile_options() const { return options_; }

  // Every step of every placement ends before this.
  Nanoseconds horizon() const { return horizon_; }

 private:
  friend class ProblemCompiler;
  Problem() = default;

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Cluster> cluster_;
  // Devices whose every op lasts the same share a column of durations.
  std::vector<std::uint32_t> column_of_;
  std::vector<Nanoseconds> durations_;  // [column][op]
  std::vector<Nanoseconds> fastest_;
  std::vector<Nanoseconds> mean_;
  Nodes nodes_;
  Colocation colocation_;
  std::vector<std::vector<DeviceId>> device_sets_;
  std::vector<std::uint32_t> device_set_of_;  // by group
  std::vector<Bytes> resident_;
  std::vector<Bytes> group_resident_;
  std::vector<CostOrigin> origins_;
  CompileOptions options_;
  double mean_ns_per_byte_ = 0;
  double mean_latency_ns_ = 0;
  Nanoseconds horizon_ = 0;
  std::vector<TensorId> overwritten_;  // by op
};

std::shared_ptr<const Problem> compile(std::shared_ptr<const Graph> graph,
                                       std::shared_ptr<const Cluster> cluster, CostMode mode);

}  // namespace emplace
