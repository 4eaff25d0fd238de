// What consecutive parts of a model are made of. A model is cut into consecutive parts when data go
// from earlier parts to later ones only: forward, that is; a backward pass runs the other way, on
// the parts of its forward pass (Tarnawski et al., NeurIPS 2020).
//
// Colocation groups that such a cut can never separate are one unit, and units are partly ordered:
// by what their forward ops read of each other; and, where a group has none, by what its backward
// ops read of others and others of them, reversed. Nothing else orders them: not what backward ops
// read of forward ones, nor updates.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.h"
#include "base/rng.h"

#include "cost/problem.h"

namespace emplace {

struct SplitUnits {
  std::vector<std::uint32_t> of_group;  // by group, its unit
  // Units are numbered such that all of these lead upwards; distinct, ascending.
  Csr<std::uint32_t> successors;

  std::uint32_t size() const { return static_cast<std::uint32_t>(successors.size()); }
};

// Every group that can be by itself is.
SplitUnits find_split_units(const Problem& problem);

// Fewer and larger ones: parameters and all that takes no time and reads nothing are with their
// first reader, and backward ops are with the forward ops that they read from, or those that their
// gradients come from, as if they were colocated.
SplitUnits find_coarse_split_units(const Problem& problem);

// All units in an order that the partial one allows: by number, or at random and depth first, so
// that chains stay together.
std::vector<std::uint32_t> numbered_order(const SplitUnits& units);
std::vector<std::uint32_t> depth_first_order(const SplitUnits& units, Rng& rng);

}  // namespace emplace
