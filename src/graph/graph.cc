#include "graph/graph.h"

#include <array>

namespace emplace {
namespace {

constexpr std::array<std::string_view, 3> kPhaseNames{"forward", "backward", "update"};

}  // namespace

std::string_view phase_name(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}

std::optional<Phase> parse_phase(std::string_view name) {
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
    if (kPhaseNames[i] == name) return static_cast<Phase>(i);
  }
  return std::nullopt;
}

OpRole role_of_type(std::string_view type) {
  if (type == "parameter") return OpRole::kParameter;
  if (type == "buffer") return OpRole::kBuffer;
  if (type == "input") return OpRole::kInput;
  if (type == "constant") return OpRole::kConstant;
  return OpRole::kCompute;
}

Graph::Graph() {
  attribute_sets_.emplace_back();
}

std::optional<OpId> Graph::find_op(std::string_view name) const {
  return names_.find(name);
}

std::optional<std::int64_t> Graph::flops(OpId op) const {
  if (flops_[op] == kUnknown) return std::nullopt;
  return flops_[op];
}

std::optional<Bytes> Graph::bytes_moved(OpId op) const {
  if (bytes_moved_[op] == kUnknown) return std::nullopt;
  return bytes_moved_[op];
}

}  // namespace emplace
