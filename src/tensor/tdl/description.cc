#include "tensor/tdl/description.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace emplace::tdl {
namespace {

bool uses(const Access& access, VariableId variable) {
  return std::any_of(access.indices.begin(), access.indices.end(),
                     [&](const Index& index) { return index.uses(variable); });
}

// Whether the part leaves out the beginning of a variable that the output sums over.
bool is_later_part(const Description& description, const std::vector<Interval>& box) {
  for (VariableId v = 0; v < description.variables.size(); ++v) {
    if (box[v].begin > 0 && description.is_reduction(v)) return true;
  }
  return false;
}

std::string text(const Index& index, const Description& description) {
  std::string result;
  for (const Term& term : index.terms()) {
    if (!result.empty()) result += " + ";
    if (term.factor != 1) result += fmt::format("{} ", term.factor);
    result += description.variables[term.variable].name;
  }
  if (index.constant() != 0 || result.empty()) {
    result += result.empty() ? fmt::format("{}", index.constant())
                             : fmt::format(" {} {}", index.constant() < 0 ? '-' : '+',
                                           std::abs(index.constant()));
  }
  return index.divisor() == 1 ? result : fmt::format("({})/{}", result, index.divisor());
}

std::string text(const Access& access, const Description& description) {
  std::vector<std::string> indices;
  for (const Index& index : access.indices) indices.push_back(text(index, description));
  return fmt::format("{}[{}]", access.position, fmt::join(indices, ", "));
}

std::string_view symbol(Reducer reducer) {
  switch (reducer) {
    case Reducer::kMax:
      return "max";
    case Reducer::kMin:
      return "min";
    case Reducer::kProduct:
      return "prod";
    case Reducer::kSum:
      break;
  }
  return "sum";
}

}  // namespace

std::vector<VariableId> Description::divisible() const {
  std::vector<VariableId> result;
  for (VariableId v = 0; v < variables.size(); ++v) {
    if (variables[v].divisible && variables[v].extent > 1) result.push_back(v);
  }
  return result;
}

bool Description::is_reduction(VariableId variable) const {
  return std::any_of(writes.begin(), writes.end(),
                     [&](const Write& write) { return !uses(write, variable); });
}

bool Description::is_elementwise() const {
  const auto plain = [](const Index& index) { return index.is_variable() || index.is_constant(); };
  const auto aligned = [&](const Access& access) {
    return std::all_of(access.indices.begin(), access.indices.end(), plain);
  };
  for (VariableId v = 0; v < variables.size(); ++v) {
    if (variables[v].extent > 1 && (!variables[v].divisible || is_reduction(v))) return false;
  }
  return std::all_of(reads.begin(), reads.end(), aligned) &&
         std::all_of(writes.begin(), writes.end(), aligned);
}

Region region_of(const Shape& shape) {
  Region region;
  region.reserve(shape.size());
  for (const std::int64_t extent : shape) region.push_back({0, extent});
  return region;
}

Piece piece_of(const Description& description, const std::vector<Interval>& box,
               const std::vector<Shape>& inputs, const std::vector<Shape>& outputs,
               const Attributes& attributes) {
  Piece piece{.box = box,
              .wanted = {},
              .inputs = std::vector<Region>(inputs.size()),
              .reads = std::vector<std::uint8_t>(inputs.size(), 0),
              .outputs = std::vector<Region>(outputs.size()),
              .attributes = attributes};
  const bool later = is_later_part(description, box);
  for (const Access& read : description.reads) {
    Region wanted;
    Region clipped;
    bool any = true;
    for (std::size_t d = 0; d < read.indices.size(); ++d) {
      wanted.push_back(read.indices[d].over(box));
      clipped.push_back(intersect(wanted[d], {0, inputs[read.position][d]}));
      any = any && !clipped[d].empty();
    }
    piece.wanted.push_back(std::move(wanted));
    if (!any && !read.if_any) piece.valid = false;
    if ((read.once && later) || !any) continue;
    if (piece.reads[read.position] == 0) {
      piece.reads[read.position] = 1;
      piece.inputs[read.position] = std::move(clipped);
      continue;
    }
    Region& region = piece.inputs[read.position];
    for (std::size_t d = 0; d < region.size(); ++d) region[d] = hull(region[d], clipped[d]);
  }
  for (const Write& write : description.writes) {
    Region& region = piece.outputs[write.position];
    for (std::size_t d = 0; d < write.indices.size(); ++d) {
      region.push_back(intersect(write.indices[d].over(box), {0, outputs[write.position][d]}));
      if (region[d].empty()) piece.valid = false;
    }
  }
  if (piece.valid && description.localise) description.localise(piece);
  return piece;
}

std::string text(const Description& description) {
  std::vector<std::string> lines;
  for (const Write& write : description.writes) {
    std::vector<std::string> reduced;
    for (VariableId v = 0; v < description.variables.size(); ++v) {
      if (description.variables[v].extent > 1 && !uses(write, v)) {
        reduced.push_back(description.variables[v].name);
      }
    }
    std::vector<std::string> reads;
    for (const Access& read : description.reads) reads.push_back("in" + text(read, description));
    std::string line = fmt::format("out{} = ", text(write, description));
    if (!reduced.empty() && write.reducer) {
      line += fmt::format("{} {}. ", symbol(*write.reducer), fmt::join(reduced, ", "));
    }
    lines.push_back(line + fmt::format("f({})", fmt::join(reads, ", ")));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace emplace::tdl
