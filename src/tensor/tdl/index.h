// Indices into tensors as affine forms of index variables, and the intervals that they run through:
// the ground of the analysis that finds which part of an input a part of an operator needs (Wang et
// al. 2019, Tofu, section 4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace emplace::tdl {

using Position = std::int64_t;

// Whole numbers from begin up to, but not including, end.
struct Interval {
  Position begin = 0;
  Position end = 0;

  Position size() const { return end > begin ? end - begin : 0; }
  bool empty() const { return end <= begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

Interval intersect(const Interval& a, const Interval& b);
// The smallest interval that holds both; an empty one holds nothing.
Interval hull(const Interval& a, const Interval& b);

using VariableId = std::uint32_t;

struct Term {
  VariableId variable;
  Position factor;
  friend bool operator==(const Term&, const Term&) = default;
};

// (sum of factor x variable + constant) / divisor. A division stands for those values for which it
// has no remainder.
class Index {
 public:
  Index(Position constant = 0) : constant_(constant) {}  // NOLINT: numbers are indices
  static Index of(VariableId variable);

  const std::vector<Term>& terms() const { return terms_; }  // by variable, no factor is 0
  Position constant() const { return constant_; }
  Position divisor() const { return divisor_; }
  bool is_constant() const { return terms_.empty(); }
  // Whether it is one variable and nothing else.
  bool is_variable() const;
  bool uses(VariableId variable) const;
  Position factor_of(VariableId variable) const;

  friend Index operator+(const Index& a, const Index& b);
  friend Index operator-(const Index& a, const Index& b);
  friend Index operator*(const Index& a, Position factor);
  // Only of what has not been divided yet.
  friend Index operator/(const Index& a, Position divisor);
  friend bool operator==(const Index&, const Index&) = default;

  // With every variable in its interval of `box` (by variable). Nothing when one of them is empty.
  Interval over(const std::vector<Interval>& box) const;

 private:
  std::vector<Term> terms_;
  Position constant_ = 0;
  Position divisor_ = 1;
};

// An interval whose ends are affine forms of the variables' extents X_0, X_1, ...: what an index
// runs through when every variable runs through [0, X_i), or through the lower or the upper half of
// that. Ends are exclusive.
struct SymbolicInterval {
  struct End {
    std::vector<double> extents;  // factor of X_i
    double constant = 0;
    friend bool operator==(const End&, const End&) = default;
  };
  End begin;
  End end;
  friend bool operator==(const SymbolicInterval&, const SymbolicInterval&) = default;

  // "[X1/2 - 1, X1 + 1)", with the variables' names.
  std::string text(const std::vector<std::string>& names) const;
};

enum class Half { kWhole, kLower, kUpper };

// With the part of each variable's range that `halves` says.
SymbolicInterval symbolic(const Index& index, const std::vector<Half>& halves);

}  // namespace emplace::tdl
