#include "tensor/op_regions.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tensor/ways.h"

namespace emplace {
namespace {

// Whether the values of the index have no gaps between them, however variables that can be cut are
// cut: those of a variable with a larger factor are filled by variables with smaller ones.
bool has_no_gaps(const tdl::Index& index, const tdl::Description& description) {
  if (index.divisor() != 1) return false;
  std::vector<std::pair<tdl::Position, tdl::Position>> terms;  // factor, extent that is certain
  for (const tdl::Term& term : index.terms()) {
    const tdl::Variable& variable = description.variables[term.variable];
    terms.emplace_back(std::abs(term.factor), variable.divisible ? 1 : variable.extent);
  }
  std::sort(terms.begin(), terms.end());
  tdl::Position reach = 1;
  for (const auto& [factor, extent] : terms) {
    if (factor > reach) return false;
    reach += factor * (extent - 1);
  }
  return true;
}

// An input that several accesses touch may have gaps between them.
bool is_dense(const tdl::Description* description, std::size_t input) {
  if (description == nullptr) return true;
  const auto reads = [&](const tdl::Access& access) { return access.position == input; };
  if (std::count_if(description->reads.begin(), description->reads.end(), reads) != 1) return false;
  const tdl::Access& access =
      *std::find_if(description->reads.begin(), description->reads.end(), reads);
  return !access.if_any &&
         std::all_of(access.indices.begin(), access.indices.end(),
                     [&](const tdl::Index& index) { return has_no_gaps(index, *description); });
}

}  // namespace

void BoxRows::add(const tdl::Region& region, bool there) {
  tdl::Position product = there ? 1 : 0;
  for (std::size_t d = 0; d < rank_; ++d) {
    const tdl::Interval range = there ? region[d] : tdl::Interval{};
    ends_.push_back(range.begin);
    ends_.push_back(range.end);
    product *= range.size();
  }
  volumes_.push_back(static_cast<double>(product));
}

double BoxRows::common(std::size_t way, const BoxRows& other, std::size_t other_way,
                       std::size_t group) const {
  const tdl::Position* mine = ends(way, group);
  const tdl::Position* others = other.ends(other_way, group);
  tdl::Position product = 1;
  for (std::size_t d = 0; d < rank_; ++d) {
    const tdl::Position size =
        std::min(mine[2 * d + 1], others[2 * d + 1]) - std::max(mine[2 * d], others[2 * d]);
    if (size <= 0) return 0;
    product *= size;
  }
  return static_cast<double>(product);
}

double BoxRows::least_union(std::size_t way) const {
  double largest = 0;
  double sum = 0;
  bool apart = true;
  for (std::size_t group = 0; group < groups_; ++group) {
    largest = std::max(largest, volume(way, group));
    bool seen = false;
    for (std::size_t before = 0; before < group && !seen; ++before) {
      seen = std::equal(ends(way, group), ends(way, group) + 2 * rank_, ends(way, before));
      if (seen) break;
      bool overlap = true;
      for (std::size_t d = 0; d < rank_ && overlap; ++d) {
        overlap = std::min(ends(way, group)[2 * d + 1], ends(way, before)[2 * d + 1]) >
                  std::max(ends(way, group)[2 * d], ends(way, before)[2 * d]);
      }
      apart = apart && !overlap;
    }
    if (!seen) sum += volume(way, group);
  }
  return apart ? sum : largest;
}

Worker OpRegionTable::group_size() const {
  return workers_.count() / workers_.first(levels_).count();
}

const OpRegions* OpRegionTable::of(OpId op) {
  const std::uint32_t signature = input_.descriptions.signature(op);
  auto& known = signature != 0 ? by_signature_.try_emplace(signature).first->second
                               : undescribed_.try_emplace(op).first->second;
  if (known == nullptr) known = make(op);
  return known->ways.empty() ? nullptr : known.get();
}

std::unique_ptr<OpRegions> OpRegionTable::make(OpId op) const {
  const Graph& graph = input_.graph;
  auto regions = std::make_unique<OpRegions>();
  const auto groups = static_cast<std::size_t>(workers_.first(levels_).count());
  for (const TensorId tensor : graph.outputs(op)) {
    if (!graph.has_shape(tensor)) return regions;
    regions->outputs.push_back({{groups, graph.shape(tensor).size()}, {}});
  }
  const auto inputs = graph.inputs(op);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!graph.has_shape(inputs[i])) return regions;
    regions->inputs.push_back(
        {{groups, graph.shape(inputs[i]).size()},
         levels_ == workers_.levels() || is_dense(input_.descriptions[op], i)});
  }
  for (const Cuts& cuts : ways_of(op)) {
    if (add_way(op, cuts, *regions)) regions->ways.push_back(cuts);
  }
  return regions;
}

// More than plans may have, where a part is not valid.
std::vector<Cuts> OpRegionTable::ways_of(OpId op) const {
  Cuts uncut(workers_.levels(), kUncut);
  const tdl::Description* description = input_.descriptions[op];
  const Graph& graph = input_.graph;
  const bool lies = graph.is_source(op) && graph.outputs(op).size() == 1;
  if (description == nullptr && !lies) return {uncut};
  const auto variables =
      description != nullptr ? variables_of(*description) : input_.whole(graph.outputs(op)[0]);
  const std::vector<std::int8_t> divisible =
      description != nullptr ? variables_to_cut(*description) : all_dimensions(variables.size());
  if (description != nullptr && divisible.size() != description->divisible().size()) return {};
  std::size_t most = 1;
  for (std::size_t level = 0; level < levels_; ++level) most *= divisible.size() + 1;
  if (most > kMostWays) return {};
  std::vector<Cuts> ways;
  extend(variables, divisible, uncut, 0, ways);
  return ways;
}

void OpRegionTable::extend(const tdl::Region& variables, const std::vector<std::int8_t>& divisible,
                           Cuts& cuts, std::size_t level, std::vector<Cuts>& ways) const {
  if (level == levels_) {
    ways.push_back(cuts);
    return;
  }
  extend(variables, divisible, cuts, level + 1, ways);
  for (const std::int8_t variable : divisible) {
    cuts[level] = variable;
    if (has_parts_for_all(variables[static_cast<std::size_t>(variable)], cuts, variable,
                          workers_)) {
      extend(variables, divisible, cuts, level + 1, ways);
    }
  }
  cuts[level] = kUncut;
}

tdl::Piece OpRegionTable::piece_at(OpId op, const Cuts& cuts, Worker worker) const {
  const Graph& graph = input_.graph;
  if (const tdl::Description* description = input_.descriptions[op]) {
    return piece_of(*description, part_of(variables_of(*description), cuts, workers_, worker),
                    input_.shapes(graph.inputs(op)), input_.shapes(graph.outputs(op)),
                    graph.attributes(op));
  }
  tdl::Piece piece;
  for (const TensorId tensor : graph.inputs(op)) piece.inputs.push_back(input_.whole(tensor));
  for (const TensorId tensor : graph.outputs(op)) {
    piece.outputs.push_back(part_of(input_.whole(tensor), cuts, workers_, worker));
  }
  piece.reads.assign(piece.inputs.size(), 1);
  return piece;
}

// Nothing is added where plans cannot cut it so.
bool OpRegionTable::add_way(OpId op, const Cuts& cuts, OpRegions& regions) const {
  const tdl::Description* description = input_.descriptions[op];
  std::vector<tdl::Piece> pieces;
  for (Worker first = 0; first < workers_.count(); first += group_size()) {
    pieces.push_back(piece_at(op, cuts, first));
    if (!pieces.back().valid && levels_ == workers_.levels()) return false;
  }
  for (const tdl::Piece& piece : pieces) {
    for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
      regions.inputs[i].boxes.add(piece.inputs[i], piece.reads[i] != 0);
    }
    for (std::size_t i = 0; i < piece.outputs.size(); ++i) {
      regions.outputs[i].boxes.add(piece.outputs[i]);
    }
  }
  for (std::size_t i = 0; i < regions.outputs.size(); ++i) {
    int partial = 1;
    for (std::size_t level = 0; level < levels_ && description != nullptr; ++level) {
      if (role_of_cut(*description, i, cuts[level]) == LevelRole::kPartial) {
        partial *= workers_.factor(level);
      }
    }
    regions.outputs[i].partial.push_back(partial);
  }
  return true;
}

}  // namespace emplace
