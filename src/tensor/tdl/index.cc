#include "tensor/tdl/index.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"

namespace emplace::tdl {
namespace {

Position floor_divide(Position a, Position b) {
  const Position quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Position ceil_divide(Position a, Position b) {
  return -floor_divide(-a, b);
}

std::string number(double value) {
  return fmt::format("{:g}", value);
}

// "X_b/2" for a half of b's extent.
std::string part(double factor, const std::string& name) {
  if (factor == 1) return name;
  const double inverse = 1 / factor;
  if (inverse == std::round(inverse)) return fmt::format("{}/{}", name, number(inverse));
  return fmt::format("{}{}", number(factor), name);
}

std::string text_of(const SymbolicInterval::End& end, const std::vector<std::string>& names) {
  std::string text;
  const auto append = [&](double sign, const std::string& what) {
    if (text.empty()) {
      text = sign < 0 ? "-" + what : what;
    } else {
      text += (sign < 0 ? " - " : " + ") + what;
    }
  };
  for (std::size_t i = 0; i < end.extents.size(); ++i) {
    if (end.extents[i] != 0) append(end.extents[i], part(std::abs(end.extents[i]), names[i]));
  }
  if (end.constant != 0 || text.empty()) append(end.constant, number(std::abs(end.constant)));
  return text;
}

}  // namespace

Interval intersect(const Interval& a, const Interval& b) {
  const Interval result{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return result.empty() ? Interval{} : result;
}

Interval hull(const Interval& a, const Interval& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

Index Index::of(VariableId variable) {
  Index index;
  index.terms_.push_back({variable, 1});
  return index;
}

bool Index::is_variable() const {
  return terms_.size() == 1 && terms_[0].factor == 1 && constant_ == 0 && divisor_ == 1;
}

bool Index::uses(VariableId variable) const {
  return factor_of(variable) != 0;
}

Position Index::factor_of(VariableId variable) const {
  for (const Term& term : terms_) {
    if (term.variable == variable) return term.factor;
  }
  return 0;
}

Index operator+(const Index& a, const Index& b) {
  EMPLACE_CHECK(a.divisor_ == 1 && b.divisor_ == 1);
  Index sum(a.constant_ + b.constant_);
  auto left = a.terms_.begin();
  auto right = b.terms_.begin();
  while (left != a.terms_.end() || right != b.terms_.end()) {
    const bool only_left =
        right == b.terms_.end() || (left != a.terms_.end() && left->variable < right->variable);
    if (only_left) {
      sum.terms_.push_back(*left++);
    } else if (left == a.terms_.end() || right->variable < left->variable) {
      sum.terms_.push_back(*right++);
    } else {
      const Position factor = left->factor + right->factor;
      if (factor != 0) sum.terms_.push_back({left->variable, factor});
      ++left;
      ++right;
    }
  }
  return sum;
}

Index operator-(const Index& a, const Index& b) {
  return a + b * -1;
}

Index operator*(const Index& a, Position factor) {
  EMPLACE_CHECK(a.divisor_ == 1);
  if (factor == 0) return {};
  Index product = a;
  for (Term& term : product.terms_) term.factor *= factor;
  product.constant_ *= factor;
  return product;
}

Index operator/(const Index& a, Position divisor) {
  EMPLACE_CHECK(a.divisor_ == 1 && divisor > 0);
  Index quotient = a;
  quotient.divisor_ = divisor;
  return quotient;
}

Interval Index::over(const std::vector<Interval>& box) const {
  Position least = constant_;
  Position most = constant_;
  for (const Term& term : terms_) {
    const Interval& range = box[term.variable];
    if (range.empty()) return {};
    const Position first = range.begin * term.factor;
    const Position last = (range.end - 1) * term.factor;
    least += std::min(first, last);
    most += std::max(first, last);
  }
  return {ceil_divide(least, divisor_), floor_divide(most, divisor_) + 1};
}

std::string SymbolicInterval::text(const std::vector<std::string>& names) const {
  return fmt::format("[{}, {})", text_of(begin, names), text_of(end, names));
}

SymbolicInterval symbolic(const Index& index, const std::vector<Half>& halves) {
  SymbolicInterval result;
  result.begin.extents.assign(halves.size(), 0);
  result.end.extents.assign(halves.size(), 0);
  result.begin.constant = static_cast<double>(index.constant());
  result.end.constant = static_cast<double>(index.constant());
  for (const Term& term : index.terms()) {
    const Half half = halves[term.variable];
    const double first = half == Half::kUpper ? 0.5 : 0;
    const double last = half == Half::kLower ? 0.5 : 1;  // of the extent; less one
    const auto factor = static_cast<double>(term.factor);
    SymbolicInterval::End& least = factor < 0 ? result.end : result.begin;
    SymbolicInterval::End& most = factor < 0 ? result.begin : result.end;
    least.extents[term.variable] += factor * first;
    most.extents[term.variable] += factor * last;
    most.constant -= factor;
  }
  const auto divisor = static_cast<double>(index.divisor());
  for (SymbolicInterval::End* end : {&result.begin, &result.end}) {
    for (double& extent : end->extents) extent /= divisor;
    end->constant /= divisor;
  }
  result.end.constant += 1;
  return result;
}

}  // namespace emplace::tdl
