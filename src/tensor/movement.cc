#include "tensor/movement.h"

#include <algorithm>
#include <numeric>

namespace emplace {

LevelSet Spread::partial_levels() const {
  LevelSet levels = 0;
  for (std::size_t level = 0; level < roles.size(); ++level) {
    if (roles[level] == LevelRole::kPartial) levels |= level_set(level);
  }
  return levels;
}

int Spread::partial_count(const Workers& workers) const {
  int count = 1;
  for (std::size_t level = 0; level < roles.size(); ++level) {
    if (roles[level] == LevelRole::kPartial) count *= workers.factor(level);
  }
  return count;
}

LevelRole role_of_cut(const tdl::Description& description, std::size_t output,
                      std::int8_t variable) {
  if (variable == kUncut) return LevelRole::kSame;
  const auto& indices = description.writes[output].indices;
  const bool written = std::any_of(indices.begin(), indices.end(), [&](const tdl::Index& index) {
    return index.uses(static_cast<tdl::VariableId>(variable));
  });
  return written ? LevelRole::kParts : LevelRole::kPartial;
}

std::vector<LevelRole> roles_without_sums(const Cuts& cuts) {
  std::vector<LevelRole> roles;
  for (const std::int8_t cut : cuts) {
    roles.push_back(cut == kUncut ? LevelRole::kSame : LevelRole::kParts);
  }
  return roles;
}

Spread spread_of(const tdl::Region& whole, const Cuts& cuts, const Workers& workers) {
  Spread spread;
  for (Worker worker = 0; worker < workers.count(); ++worker) {
    spread.regions.push_back(part_of(whole, cuts, workers, worker));
  }
  spread.roles = roles_without_sums(cuts);
  return spread;
}

tdl::Region intersect(const tdl::Region& a, const tdl::Region& b) {
  tdl::Region result(a.size());
  for (std::size_t d = 0; d < a.size(); ++d) result[d] = tdl::intersect(a[d], b[d]);
  return result;
}

bool is_empty(const tdl::Region& region) {
  return std::any_of(region.begin(), region.end(),
                     [](const tdl::Interval& range) { return range.empty(); });
}

bool contains(const tdl::Region& outer, const tdl::Region& inner) {
  for (std::size_t d = 0; d < outer.size(); ++d) {
    if (inner[d].begin < outer[d].begin || inner[d].end > outer[d].end) return false;
  }
  return true;
}

tdl::Position volume(const tdl::Region& region) {
  tdl::Position product = 1;
  for (const tdl::Interval& range : region) product *= range.size();
  return product;
}

tdl::Position common_volume(const tdl::Region& a, const tdl::Region& b) {
  tdl::Position product = 1;
  for (std::size_t d = 0; d < a.size(); ++d) {
    const tdl::Position size = std::min(a[d].end, b[d].end) - std::max(a[d].begin, b[d].begin);
    if (size <= 0) return 0;
    product *= size;
  }
  return product;
}

std::vector<Worker> sources_for(const std::vector<LevelRole>& roles, const Workers& workers,
                                Worker to, int partial) {
  // The digits of those that have the partial result: the worker's own plus `partial`, as a number
  // in the base of the partial levels.
  std::vector<int> wanted(workers.levels(), -1);
  for (std::size_t level = workers.levels(); level-- > 0;) {
    const int own = workers.digit(to, level);
    if (roles[level] == LevelRole::kSame) wanted[level] = own;
    if (roles[level] == LevelRole::kPartial) {
      const int factor = workers.factor(level);
      wanted[level] = (own + partial % factor) % factor;
      partial /= factor;
    }
  }
  std::vector<Worker> sources;
  for (Worker from = 0; from < workers.count(); ++from) {
    bool has = true;
    for (std::size_t level = 0; level < workers.levels() && has; ++level) {
      has = wanted[level] < 0 || workers.digit(from, level) == wanted[level];
    }
    if (has) sources.push_back(from);
  }
  return sources;
}

std::vector<Block> blocks_for(const Spread& spread, const Workers& workers, Worker to,
                              const tdl::Region& region, int partial) {
  std::vector<Block> blocks;
  for (const Worker from : sources_for(spread.roles, workers, to, partial)) {
    tdl::Region block = intersect(spread.regions[from], region);
    if (!is_empty(block)) blocks.push_back({from, std::move(block)});
  }
  return blocks;
}

Cuts cuts_for_reduction(const tdl::Region& whole, const Cuts& cuts, const Workers& workers,
                        LevelSet among) {
  std::vector<std::int8_t> dimensions(whole.size());
  std::iota(dimensions.begin(), dimensions.end(), std::int8_t{0});
  std::stable_sort(dimensions.begin(), dimensions.end(), [&](std::int8_t a, std::int8_t b) {
    return whole[static_cast<std::size_t>(a)].size() > whole[static_cast<std::size_t>(b)].size();
  });
  Cuts result = cuts;
  for (std::size_t level = 0; level < cuts.size(); ++level) {
    if (cuts[level] != kUncut || !has_level(among, level)) continue;
    for (const std::int8_t dimension : dimensions) {
      result[level] = dimension;
      const tdl::Interval& range = whole[static_cast<std::size_t>(dimension)];
      if (has_parts_for_all(range, result, dimension, workers)) break;
      result[level] = kUncut;
    }
  }
  return result;
}

}  // namespace emplace
