// Builds a Description from what is said in the language, and refuses what could not be cut
// correctly. A variable may be cut if it is written by every output or reduced by a reducer that
// can put partial results together; what is neither is inside an opaque function, and stays whole.
// Nor may the minor digit of a mixed index (o in g * 16 + o) be cut while the major one may be,
// since a part of it is no interval. A definition whose writes do not cover the outputs exactly
// describes nothing: `done` returns none, and the op is then kept whole.
//
// `gradient_of_product` turns a product round: for the gradient of one input, what is summed over
// and what is written change places. An index that counts through the input digit by digit is
// written as it is; a window's (2 y + k - 1) is solved for the output's variable. After Tofu's TDL
// (Wang, Huang, Li, EuroSys 2019). Linear in variables and accesses.
#include "tensor/tdl/definition.h"

#include <algorithm>

#include "base/check.h"

namespace emplace::tdl {
namespace {

VariableId variable_of(const Index& index) {
  EMPLACE_CHECK(index.is_variable());
  return index.terms()[0].variable;
}

}  // namespace

Expression Expression::join(Expression a, const Expression& b) {
  a.reads_.insert(a.reads_.end(), b.reads_.begin(), b.reads_.end());
  a.reduced_.insert(a.reduced_.end(), b.reduced_.begin(), b.reduced_.end());
  EMPLACE_CHECK(!a.reducer_ || !b.reducer_ || *a.reducer_ == *b.reducer_);
  if (!a.reducer_) a.reducer_ = b.reducer_;
  return a;
}

Expression reduce(Reducer reducer, const std::vector<Index>& over, Expression of) {
  for (const Index& index : over) of.reduced_.push_back(variable_of(index));
  of.reducer_ = reducer;
  return of;
}

Expression once(Expression of) {
  for (Access& read : of.reads_) read.once = true;
  return of;
}

Expression if_any(Expression of) {
  for (Access& read : of.reads_) read.if_any = true;
  return of;
}

Index Definition::add(std::string name, Position extent, bool divisible) {
  const auto variable = static_cast<VariableId>(description_.variables.size());
  description_.variables.push_back({std::move(name), extent, divisible});
  return Index::of(variable);
}

std::vector<Index> Definition::indices(const Shape& shape, const std::string& prefix) {
  std::vector<Index> result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    result.push_back(index(prefix + std::to_string(d), shape[d]));
  }
  return result;
}

Expression Definition::Tensor::operator()(std::vector<Index> indices) const {
  if (indices.size() != definition_.input(position_).size()) definition_.consistent_ = false;
  return Expression(Access{.position = position_, .indices = std::move(indices)});
}

Expression Definition::all_of(std::size_t position) {
  std::vector<Index> indices;
  for (std::size_t d = 0; d < input(position).size(); ++d) {
    indices.push_back(
        whole("w" + std::to_string(position) + "_" + std::to_string(d), input(position)[d]));
  }
  return in(position)(std::move(indices));
}

Definition::Target Definition::Output::operator()(std::vector<Index> indices) const {
  if (indices.size() != definition_.output(position_).size()) definition_.consistent_ = false;
  Write write;
  write.position = position_;
  write.indices = std::move(indices);
  return {definition_, std::move(write)};
}

void Definition::Target::operator=(const Expression& value) {
  write_.reducer = value.reducer_;
  for (const VariableId reduced : value.reduced_) {
    for (const Index& index : write_.indices) EMPLACE_CHECK(!index.uses(reduced));
  }
  // Whatever is neither written nor reduced is a part of an opaque function.
  for (VariableId v = 0; v < definition_.description_.variables.size(); ++v) {
    Variable& variable = definition_.description_.variables[v];
    const bool written = std::any_of(write_.indices.begin(), write_.indices.end(),
                                     [&](const Index& index) { return index.uses(v); });
    const bool reduced =
        std::find(value.reduced_.begin(), value.reduced_.end(), v) != value.reduced_.end();
    if (!written && !reduced) variable.divisible = false;
  }
  definition_.keep_reads(value);
  definition_.description_.writes.push_back(std::move(write_));
}

void Definition::touches(const Expression& value) {
  keep_reads(value);
}

void Definition::keep_reads(const Expression& value) {
  for (const Access& read : value.reads_) {
    const auto same = [&](const Access& other) {
      return other.position == read.position && other.indices == read.indices;
    };
    auto& reads = description_.reads;
    if (std::none_of(reads.begin(), reads.end(), same)) reads.push_back(read);
  }
}

// A part of the digit that counts single elements of a dimension, as o is in g x 16 + o, does not
// make an interval of that dimension.
void Definition::forbid_minor_digits(const Access& access, const std::vector<Variable>& as_said) {
  for (const Index& index : access.indices) {
    for (const Term& minor : index.terms()) {
      Variable& variable = description_.variables[minor.variable];
      for (const Term& major : index.terms()) {
        const Variable& other = as_said[major.variable];
        if (major == minor || other.extent == 1 || !other.divisible) continue;
        if (major.factor >= minor.factor * variable.extent) variable.divisible = false;
      }
    }
  }
}

std::optional<Description> Definition::done() && {
  if (!consistent_) return std::nullopt;
  const std::vector<Variable> as_said = description_.variables;
  for (const Access& read : description_.reads) forbid_minor_digits(read, as_said);
  for (const Write& write : description_.writes) forbid_minor_digits(write, as_said);
  EMPLACE_CHECK(description_.writes.size() == num_outputs());
  std::sort(description_.writes.begin(), description_.writes.end(),
            [](const Write& a, const Write& b) { return a.position < b.position; });
  std::vector<Interval> box;
  for (const Variable& variable : description_.variables) box.push_back({0, variable.extent});
  for (const Write& write : description_.writes) {
    for (std::size_t d = 0; d < write.indices.size(); ++d) {
      const Interval range = write.indices[d].over(box);
      if (range.begin != 0 || range.end != output(write.position)[d]) return std::nullopt;
    }
  }
  return std::move(description_);
}

namespace {

// Whether the index counts through a dimension digit by digit, so that it takes every value once.
bool is_mixed_radix(const Index& index, const std::vector<Variable>& variables, Position extent) {
  if (index.constant() != 0 || index.divisor() != 1) return false;
  std::vector<Term> terms = index.terms();
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return a.factor < b.factor; });
  Position next = 1;
  for (const Term& term : terms) {
    if (variables[term.variable].extent == 1) continue;
    if (term.factor != next) return false;
    next *= variables[term.variable].extent;
  }
  return next == extent;
}

// The term of the index that the output runs over, as y in 2 y + k - 1.
const Term& solvable_term(const Index& index, const Description& forward) {
  for (const Term& term : index.terms()) {
    for (const Index& written : forward.writes[0].indices) {
      if (written.uses(term.variable)) return term;
    }
  }
  throw std::logic_error("internal error: a window does not move with the output");
}

}  // namespace

Description gradient_of_product(const Description& forward, std::size_t input,
                                const std::vector<std::size_t>& others, const Shape& input_shape) {
  const auto access = std::find_if(forward.reads.begin(), forward.reads.end(),
                                   [&](const Access& read) { return read.position == input; });
  EMPLACE_CHECK(access != forward.reads.end() && forward.writes.size() == 1);
  Description result;
  result.variables = forward.variables;
  Write write;
  write.position = 0;
  Access gradient{.position = 0, .indices = forward.writes[0].indices};
  for (std::size_t d = 0; d < access->indices.size(); ++d) {
    const Index& index = access->indices[d];
    if (is_mixed_radix(index, forward.variables, input_shape[d])) {
      write.indices.push_back(index);
      continue;
    }
    const Term solved = solvable_term(index, forward);
    const auto x = static_cast<VariableId>(result.variables.size());
    result.variables.push_back(
        {result.variables[solved.variable].name + "'", input_shape[d], true});
    const Index rest = index - Index::of(solved.variable) * solved.factor;
    for (Index& written : gradient.indices) {
      if (written.uses(solved.variable)) written = (Index::of(x) - rest) / solved.factor;
    }
    result.variables[solved.variable].extent = 1;  // no longer there
    result.variables[solved.variable].divisible = false;
    write.indices.push_back(Index::of(x));
  }
  write.reducer = Reducer::kSum;
  result.writes.push_back(std::move(write));
  result.reads.push_back(std::move(gradient));
  for (std::size_t i = 0; i < others.size(); ++i) {
    for (const Access& read : forward.reads) {
      if (read.position == others[i]) result.reads.push_back({i + 1, read.indices});
    }
  }
  return result;
}

}  // namespace emplace::tdl
