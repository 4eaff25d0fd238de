#include "learn/units/unit_graph.h"

#include <algorithm>

#include "base/check.h"

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

constexpr UnitId kNoUnit = ~UnitId{0};

struct Edge {
  UnitId from;
  UnitId to;
  Bytes bytes;
};

// Distinct, those of one pair added up, in the order of `from` and `to`.
std::vector<Edge> merged(std::vector<Edge> edges) {
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
  std::vector<Edge> result;
  for (const Edge& edge : edges) {
    if (!result.empty() && result.back().from == edge.from && result.back().to == edge.to) {
      result.back().bytes += edge.bytes;
    } else {
      result.push_back(edge);
    }
  }
  return result;
}

}  // namespace

std::vector<DeviceId> common_devices(std::span<const DeviceId> a, std::span<const DeviceId> b) {
  std::vector<DeviceId> result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

UnitGraph::UnitGraph(const Problem& problem, const std::vector<std::uint32_t>& label_of_group)
    : problem_(&problem) {
  EMPLACE_CHECK(label_of_group.size() == problem.num_groups());
  number_units(label_of_group);
  connect();
}

void UnitGraph::number_units(const std::vector<std::uint32_t>& label_of_group) {
  const GroupId count = problem_->num_groups();
  std::uint32_t labels = 0;
  for (const std::uint32_t label : label_of_group) labels = std::max(labels, label + 1);
  std::vector<UnitId> open(labels, kNoUnit);  // by label: the unit that its groups join
  std::vector<std::vector<DeviceId>> allowed;
  unit_of_group_.resize(count);
  for (GroupId group = 0; group < count; ++group) {
    check_time_at(group);
    UnitId& unit = open[label_of_group[group]];
    const std::span<const DeviceId> own = problem_->allowed_devices(group);
    std::vector<DeviceId> common;
    if (unit != kNoUnit) common = common_devices(allowed[unit], own);
    if (common.empty()) {
      unit = static_cast<UnitId>(allowed.size());
      allowed.emplace_back(own.begin(), own.end());
    } else {
      allowed[unit] = std::move(common);
    }
    unit_of_group_[group] = unit;
  }
  std::vector<std::pair<UnitId, GroupId>> members;
  for (GroupId group = 0; group < count; ++group)
    members.emplace_back(unit_of_group_[group], group);
  groups_ = Csr<GroupId>::from_pairs(allowed.size(), members);
  allowed_mask_.assign(allowed.size() * num_devices(), 0);
  for (UnitId unit = 0; unit < size(); ++unit) {
    allowed_.push_back(allowed[unit]);
    for (const DeviceId device : allowed[unit]) {
      allowed_mask_[static_cast<std::size_t>(unit) * num_devices() + device] = 1;
    }
  }
}

void UnitGraph::connect() {
  const Graph& graph = problem_->graph();
  mean_duration_.assign(size(), 0);
  output_bytes_.assign(size(), 0);
  std::vector<Edge> edges;
  std::vector<UnitId> readers;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    const UnitId unit = unit_of_op(op);
    mean_duration_[unit] += problem_->mean_duration(op);
    for (const OpId before : graph.after(op)) {
      if (unit_of_op(before) != unit) edges.push_back({unit_of_op(before), unit, 0});
    }
    for (const TensorId tensor : graph.outputs(op)) {
      readers.clear();
      for (const OpId reader : graph.consumers(tensor)) readers.push_back(unit_of_op(reader));
      std::sort(readers.begin(), readers.end());
      readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
      std::erase(readers, unit);
      for (const UnitId reader : readers) edges.push_back({unit, reader, graph.bytes(tensor)});
      if (!readers.empty()) output_bytes_[unit] += graph.bytes(tensor);
    }
  }
  edges = merged(std::move(edges));
  std::vector<std::pair<UnitId, UnitId>> to, from;
  std::vector<std::pair<UnitId, Bytes>> sent, received;
  for (const Edge& edge : edges) {
    to.emplace_back(edge.from, edge.to);
    from.emplace_back(edge.to, edge.from);
    sent.emplace_back(edge.from, edge.bytes);
    received.emplace_back(edge.to, edge.bytes);
  }
  successors_ = Csr<UnitId>::from_pairs(size(), to);
  predecessors_ = Csr<UnitId>::from_pairs(size(), from);
  successor_bytes_ = Csr<Bytes>::from_pairs(size(), sent);
  predecessor_bytes_ = Csr<Bytes>::from_pairs(size(), received);
}

Placement UnitGraph::expand(std::span<const DeviceId> device_of_unit) const {
  std::vector<DeviceId> device_of_group(problem_->num_groups());
  for (GroupId group = 0; group < problem_->num_groups(); ++group) {
    device_of_group[group] = device_of_unit[unit_of_group_[group]];
  }
  return expand_groups(*problem_, device_of_group);
}

std::vector<DeviceId> UnitGraph::contract(const Placement& placement) const {
  std::vector<Nanoseconds> time(static_cast<std::size_t>(size()) * num_devices(), 0);
  for (OpId op = 0; op < problem_->num_ops(); ++op) {
    // One nanosecond more, so that ops that take no time count too.
    time[static_cast<std::size_t>(unit_of_op(op)) * num_devices() + placement[op]] +=
        problem_->mean_duration(op) + 1;
  }
  std::vector<DeviceId> result(size());
  for (UnitId unit = 0; unit < size(); ++unit) {
    const Nanoseconds* row = &time[static_cast<std::size_t>(unit) * num_devices()];
    const std::span<const DeviceId> allowed = allowed_devices(unit);
    result[unit] = *std::max_element(allowed.begin(), allowed.end(),
                                     [&](DeviceId a, DeviceId b) { return row[a] < row[b]; });
  }
  return result;
}

}  // namespace emplace::learn
