// From where the parts of a value come to a worker that wants some region of it. The counting of
// traffic (tensor/traffic.h) and the lowering to real transfers (tensor/lower.h) both go by this.
#pragma once

#include <functional>
#include <vector>

#include "tensor/plan.h"

namespace emplace {

// What a level does to a value that all workers have some of.
enum class LevelRole : std::uint8_t {
  kSame,     // all groups have the same
  kParts,    // they have different regions
  kPartial,  // they have partial results, which have to be reduced
};

// A value whose region at each worker is known.
struct Spread {
  std::vector<tdl::Region> regions;  // by worker
  std::vector<LevelRole> roles;      // by level

  bool partial() const { return partial_levels() != 0; }
  bool operator==(const Spread&) const = default;
  LevelSet partial_levels() const;
  // Of how many partial results each element is made.
  int partial_count(const Workers& workers) const;
};

// What a cut of the variable (or none) makes of an output of the described operator.
LevelRole role_of_cut(const tdl::Description& description, std::size_t output,
                      std::int8_t variable);

// What cuts of a tensor, or of an update of it, make of its levels.
std::vector<LevelRole> roles_without_sums(const Cuts& cuts);

// A tensor that is kept with these cuts.
Spread spread_of(const tdl::Region& whole, const Cuts& cuts, const Workers& workers);

// Who has the parts of a value for the worker, of the n-th partial result (the first is its own):
// those nearest to it.
std::vector<Worker> sources_for(const std::vector<LevelRole>& roles, const Workers& workers,
                                Worker to, int partial = 0);

struct Block {
  Worker from;
  tdl::Region region;
};

// The blocks that make the region at the worker, of the n-th partial result. Blocks do not overlap.
std::vector<Block> blocks_for(const Spread& spread, const Workers& workers, Worker to,
                              const tdl::Region& region, int partial = 0);

tdl::Region intersect(const tdl::Region& a, const tdl::Region& b);
bool is_empty(const tdl::Region& region);
bool contains(const tdl::Region& outer, const tdl::Region& inner);
tdl::Position volume(const tdl::Region& region);
tdl::Position common_volume(const tdl::Region& a, const tdl::Region& b);

// Where a value that several groups are to have whole is reduced first: each of them reduces a
// part, which the others fetch, on these levels. The cuts themselves where it cannot be divided so.
Cuts cuts_for_reduction(const tdl::Region& whole, const Cuts& cuts, const Workers& workers,
                        LevelSet among = ~LevelSet{0});

}  // namespace emplace
