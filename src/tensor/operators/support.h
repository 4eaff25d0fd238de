// What several families of descriptions need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tdl/definition.h"

namespace emplace::operators {

using tdl::Definition;
using tdl::Index;
using tdl::Interval;
using tdl::Piece;
using tdl::Position;
using tdl::Signature;

// Counted from the front; nothing where there is no such axis.
inline std::optional<std::size_t> axis_from_front(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

inline std::optional<std::size_t> axis_attribute(const Signature& op, std::size_t rank,
                                                 std::int64_t otherwise) {
  return axis_from_front(op.attributes.integer("axis", otherwise), rank);
}

// The last indices of `of` for a tensor of this shape that is broadcast to them; nothing where it
// cannot be.
inline std::optional<std::vector<Index>> broadcast(const std::vector<Index>& of, const Shape& to,
                                                   const Shape& shape) {
  if (shape.size() > to.size()) return std::nullopt;
  const std::size_t skipped = to.size() - shape.size();
  std::vector<Index> indices;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && shape[d] != to[skipped + d]) return std::nullopt;
    indices.push_back(shape[d] == to[skipped + d] ? of[skipped + d] : Index(0));
  }
  return indices;
}

inline std::vector<std::int64_t> begins(const tdl::Region& region) {
  std::vector<std::int64_t> result;
  for (const Interval& range : region) result.push_back(range.begin);
  return result;
}

// Of how many elements the whole is the mean; what is itself a part says that already.
inline void set_mean_count(Piece& piece, Position count) {
  if (piece.attributes.find("mean_count") == nullptr) piece.attributes.set("mean_count", count);
}

}  // namespace emplace::operators
