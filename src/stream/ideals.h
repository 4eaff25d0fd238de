// The ideals of a partial order: the sets that hold, with an element, all that comes before it.
// What is between two of them is a set of consecutive elements.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/csr.h"

namespace emplace {

// Ideals are numbered by the number of their elements: 0 is the empty one, the last holds all.
class IdealLattice {
 public:
  struct Step {
    std::uint32_t element;  // that may be added
    std::uint32_t ideal;    // which it then is
  };

  // Of elements 0, 1, ... and their successors; nothing where there are more than `limit` ideals,
  // or `stop`, which is asked now and then, says so.
  static std::optional<IdealLattice> enumerate(const Csr<std::uint32_t>& successors,
                                               std::size_t limit,
                                               const std::function<bool()>& stop = {});
  // Where element i comes before i + 1.
  static IdealLattice chain(std::uint32_t num_elements);

  std::uint32_t size() const { return static_cast<std::uint32_t>(steps_.size()); }
  std::uint32_t num_elements() const { return num_elements_; }
  std::span<const Step> steps(std::uint32_t ideal) const { return steps_[ideal]; }
  // In an order in which they can be added one by one.
  std::vector<std::uint32_t> elements(std::uint32_t ideal) const;

 private:
  IdealLattice() = default;

  struct Origin {
    std::uint32_t element = 0;
    std::uint32_t ideal = 0;  // without the element
  };

  std::uint32_t num_elements_ = 0;
  Csr<Step> steps_;
  std::vector<Origin> origin_;  // by ideal; of no meaning for the empty one
};

}  // namespace emplace
