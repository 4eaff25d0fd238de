// A partition of a whole graph: where every tensor's parts lie and how every op is divided.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

#include "tensor/describe.h"
#include "tensor/workers.h"

namespace emplace {

// By level: the dimension that is cut, or kUncut where all groups have the same.
inline constexpr std::int8_t kUncut = -1;
using Cuts = std::vector<std::int8_t>;

// The worker's part of a tensor (or of an operator's variables), where every level cuts one
// dimension or none.
tdl::Region part_of(const tdl::Region& whole, const Cuts& cuts, const Workers& workers,
                    Worker worker);

// Whether everybody has something of a dimension that is cut so.
bool has_parts_for_all(const tdl::Interval& whole, const Cuts& cuts, std::int8_t dimension,
                       const Workers& workers);

// What a plan costs by what its method adds up, in ns, and what none costs less than (0: not
// known).
struct AddedCost {
  std::int64_t cost = 0;
  std::int64_t lower_bound = 0;
  bool proven = false;  // that none costs less than this one
};

struct Plan {
  std::string method;
  Workers workers{{}};
  std::vector<Cuts> tensors;  // dimensions, by tensor
  std::vector<Cuts> ops;      // variables of the op's description, by op
  // By tensor: what workers fetch of it they keep for the rest of the step, where else it is
  // fetched again when it is needed again. Empty: of no tensor.
  std::vector<std::uint8_t> held = {};
  // Of a method that goes by its costs alone.
  std::optional<AddedCost> added_cost = std::nullopt;

  bool holds(TensorId tensor) const { return tensor < held.size() && held[tensor] != 0; }
};

// The variables of an op as a region to be cut.
tdl::Region variables_of(const tdl::Description& description);

}  // namespace emplace
