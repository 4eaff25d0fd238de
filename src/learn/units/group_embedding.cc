#include "learn/units/group_embedding.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

// The op's outputs as slots of dimensions, their number and their bytes.
void add_outputs(const Graph& graph, OpId op, std::span<double> sums) {
  const std::span<const TensorId> outputs = graph.outputs(op);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (i < GroupEmbedding::kOutputs) {
      const std::span<const std::int64_t> shape = graph.shape(outputs[i]);
      const std::size_t dimensions =
          std::min(shape.size(), static_cast<std::size_t>(GroupEmbedding::kDimensions));
      for (std::size_t j = 0; j < dimensions; ++j) {
        sums[i * GroupEmbedding::kDimensions + j] += static_cast<double>(shape[j]);
      }
    }
    sums[GroupEmbedding::kSums - 2] += 1;
    sums[GroupEmbedding::kSums - 1] += static_cast<double>(graph.bytes(outputs[i]));
  }
}

// From the unit's ops to those of every unit that reads from them, itself included.
std::map<UnitId, float> edges_from(const UnitGraph& units, UnitId unit) {
  const Problem& problem = units.problem();
  std::map<UnitId, float> edges;
  for (const GroupId group : units.groups(unit)) {
    for (const OpId op : problem.group_ops(group)) {
      for (const TensorId tensor : problem.graph().outputs(op)) {
        for (const OpId reader : problem.graph().consumers(tensor)) {
          edges[units.unit_of_op(reader)] += 1;
        }
      }
    }
  }
  return edges;
}

void divide_by_maximum(std::span<float> row) {
  const float maximum = row.empty() ? 0 : *std::max_element(row.begin(), row.end());
  for (float& value : row) value /= maximum + 1;
}

}  // namespace

GroupEmbedding::GroupEmbedding(const UnitGraph& units, std::int64_t groups)
    : units_(&units), groups_(groups) {
  describe_ops();
}

void GroupEmbedding::describe_ops() {
  const Problem& problem = units_->problem();
  const TypeNumbers types = number_types(problem.graph());
  types_ = types.count;
  sums_.assign(units_->size() * static_cast<std::size_t>(kSums), 0);
  std::vector<double> totals(kSums, 0);
  for (UnitId unit = 0; unit < units_->size(); ++unit) {
    check_time_at(unit);
    const std::span<double> sums(sums_.data() + unit * static_cast<std::size_t>(kSums), kSums);
    std::map<std::uint32_t, float> counts;
    for (const GroupId group : units_->groups(unit)) {
      for (const OpId op : problem.group_ops(group)) {
        counts[types.of_op[op]] += 1;
        add_outputs(problem.graph(), op, sums);
      }
    }
    type_counts_.push_back(counts);
    edges_.push_back(edges_from(*units_, unit));
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += sums[i];
  }
  for (const double total : totals) log_totals_.push_back(std::log1p(total));
}

EmbeddedGroups GroupEmbedding::operator()(std::span<const std::int64_t> group_of_unit) const {
  EmbeddedGroups result;
  std::vector<std::int64_t> row_of_group(static_cast<std::size_t>(groups_), -1);
  for (const std::int64_t group : group_of_unit) row_of_group[static_cast<std::size_t>(group)] = 0;
  for (std::int64_t group = 0; group < groups_; ++group) {
    std::int64_t& row = row_of_group[static_cast<std::size_t>(group)];
    if (row < 0) continue;
    row = static_cast<std::int64_t>(result.groups.size());
    result.groups.push_back(group);
  }
  count(group_of_unit, row_of_group, result);
  scale(result.values);
  return result;
}

void GroupEmbedding::count(std::span<const std::int64_t> group_of_unit,
                           const std::vector<std::int64_t>& row_of_group,
                           EmbeddedGroups& result) const {
  const auto rows = static_cast<std::int64_t>(result.groups.size());
  const std::int64_t devices = units_->num_devices();
  Matrix& values = result.values;
  values = {rows, width(), std::vector<float>(static_cast<std::size_t>(rows * width()), 0)};
  result.allowed.assign(static_cast<std::size_t>(rows * devices), 0);
  // Sums in double: a group of many ops has more bytes than a float counts exactly.
  std::vector<double> sums(static_cast<std::size_t>(rows * kSums), 0);
  for (UnitId unit = 0; unit < units_->size(); ++unit) {
    check_time_at(unit);
    const std::int64_t group = group_of_unit[unit];
    const std::int64_t row = row_of_group[static_cast<std::size_t>(group)];
    for (const auto& [next, edges] : edges_[unit]) {
      const std::int64_t other = group_of_unit[next];
      values.at(row, other) += edges;
      values.at(row_of_group[static_cast<std::size_t>(other)], groups_ + group) += edges;
    }
    for (const auto& [type, ops] : type_counts_[unit]) values.at(row, 2 * groups_ + type) += ops;
    const std::size_t first = unit * static_cast<std::size_t>(kSums);
    for (std::size_t i = 0; i < static_cast<std::size_t>(kSums); ++i) {
      sums[static_cast<std::size_t>(row * kSums) + i] += sums_[first + i];
    }
    for (const DeviceId device : units_->allowed_devices(unit)) {
      result.allowed[static_cast<std::size_t>(row * devices + device)] = 1;
    }
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < kSums; ++i) {
      const double total = log_totals_[static_cast<std::size_t>(i)];
      const double sum = sums[static_cast<std::size_t>(row * kSums + i)];
      values.at(row, 2 * groups_ + types_ + i) =
          total > 0 ? static_cast<float>(std::log1p(sum) / total) : 0;
    }
  }
}

void GroupEmbedding::scale(Matrix& values) const {
  const auto groups = static_cast<std::size_t>(groups_);
  for (std::int64_t row = 0; row < values.rows; ++row) {
    const std::span<float> whole(values.values.data() + row * values.columns,
                                 static_cast<std::size_t>(values.columns));
    divide_by_maximum(whole.subspan(0, groups));
    divide_by_maximum(whole.subspan(groups, groups));
    divide_by_maximum(whole.subspan(2 * groups, static_cast<std::size_t>(types_)));
  }
}

}  // namespace emplace::learn
