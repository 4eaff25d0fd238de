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

namespace {

// Whether every worker's part of the dimension has an element: the smallest is what counts.
bool is_divisible(const tdl::Region& whole, const Cuts& cuts, std::int8_t dimension,
                  const Workers& workers) {
  tdl::Position least = whole[static_cast<std::size_t>(dimension)].size();
  for (std::size_t level = 0; level < cuts.size(); ++level) {
    if (cuts[level] == dimension) least /= workers.factor(level);
  }
  return least >= 1;
}

void extend(const tdl::Region& whole, const std::vector<std::int8_t>& allowed,
            const Workers& workers, bool spare, Cuts& cuts, std::vector<Cuts>& result) {
  if (cuts.size() == workers.levels()) {
    result.push_back(cuts);
    return;
  }
  bool any = false;
  for (const std::int8_t dimension : allowed) {
    cuts.push_back(dimension);
    if (is_divisible(whole, cuts, dimension, workers)) {
      any = true;
      extend(whole, allowed, workers, spare, cuts, result);
    }
    cuts.pop_back();
  }
  if (any && !spare) return;
  cuts.push_back(kUncut);
  extend(whole, allowed, workers, spare, cuts, result);
  cuts.pop_back();
}

}  // namespace

std::vector<Cuts> ways_to_cut(const tdl::Region& whole, const std::vector<std::int8_t>& allowed,
                              const Workers& workers, bool spare, const Cuts& prefix) {
  std::vector<Cuts> result;
  Cuts cuts = prefix;
  extend(whole, allowed, workers, spare, cuts, result);
  return result;
}

}  // namespace emplace
