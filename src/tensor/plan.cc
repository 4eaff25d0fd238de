#include "tensor/plan.h"

#include <algorithm>

namespace emplace {

tdl::Region part_of(const tdl::Region& whole, const Cuts& cuts, const Workers& workers,
                    Worker worker) {
  tdl::Region region = whole;
  for (std::size_t level = 0; level < cuts.size(); ++level) {
    if (cuts[level] == kUncut) continue;
    tdl::Interval& range = region[static_cast<std::size_t>(cuts[level])];
    range = workers.part(range, worker, level);
  }
  return region;
}

tdl::Region variables_of(const tdl::Description& description) {
  tdl::Region region;
  for (const tdl::Variable& variable : description.variables)
    region.push_back({0, variable.extent});
  return region;
}

bool has_parts_for_all(const tdl::Interval& whole, const Cuts& cuts, std::int8_t dimension,
                       const Workers& workers) {
  for (Worker worker = 0; worker < workers.count(); ++worker) {
    tdl::Interval range = whole;
    for (std::size_t level = 0; level < cuts.size(); ++level) {
      if (cuts[level] == dimension) range = workers.part(range, worker, level);
    }
    if (range.empty()) return false;
  }
  return true;
}

}  // namespace emplace
