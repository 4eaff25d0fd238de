// What HDP's placer is told of groups of units that its grouper made (Mirhoseini et al., ICLR
// 2018).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/features/features.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// The non-empty groups of one grouping, ascending; rows of the matrices are beside them.
struct EmbeddedGroups {
  std::vector<std::int64_t> groups;
  // [ D | D' | types | outputs ]: D counts the edges from this group to each, D' those from each to
  // this one (the diagonal: within; an edge is a tensor and an op that reads it), types the ops of
  // each type, and outputs sums over the ops'
  // outputs (dimensions, number, bytes). D, D' and types are divided by their row's maximum + 1;
  // sums are logarithms, with the whole graph's sum as 1.
  Matrix values;
  // By device: whether at least one unit of the group may be there.
  std::vector<std::uint8_t> allowed;
};

class GroupEmbedding {
 public:
  // Outputs beyond the fifth and dimensions beyond the fifth are left out, as in HDP's public code.
  static constexpr std::int64_t kOutputs = 5;
  static constexpr std::int64_t kDimensions = 5;
  static constexpr std::int64_t kSums = kOutputs * kDimensions + 2;  // count and bytes, of all

  // Keeps a reference to the units.
  GroupEmbedding(const UnitGraph& units, std::int64_t groups);

  std::int64_t groups() const { return groups_; }
  std::int64_t width() const { return 2 * groups_ + types_ + kSums; }
  // Linear in units and edges, and in groups times non-empty groups.
  EmbeddedGroups operator()(std::span<const std::int64_t> group_of_unit) const;

 private:
  void describe_ops();
  void count(std::span<const std::int64_t> group_of_unit,
             const std::vector<std::int64_t>& row_of_group, EmbeddedGroups& result) const;
  void scale(Matrix& values) const;

  const UnitGraph* units_;
  std::int64_t groups_;
  std::int64_t types_ = 0;
  // By unit: (type, ops of it); and (unit, edges to it).
  Csr<std::pair<std::uint32_t, float>> type_counts_;
  Csr<std::pair<UnitId, float>> edges_;
  std::vector<double> sums_;        // [unit][kSums]
  std::vector<double> log_totals_;  // of the whole graph
};

}  // namespace emplace::learn
