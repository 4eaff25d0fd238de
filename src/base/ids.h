// Indices into the arrays of a Graph and a Cluster, and how they are written.
#pragma once

#include <emplace/types.h>
#include <fmt/format.h>

template <class Tag, class Number>
struct fmt::formatter<emplace::Id<Tag, Number>> : fmt::formatter<Number> {
  template <class Context>
  auto format(emplace::Id<Tag, Number> id, Context& context) const {
    return fmt::formatter<Number>::format(static_cast<Number>(id), context);
  }
};
