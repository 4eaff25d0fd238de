// The least sum of tables over single variables and pairs of them, by eliminating one variable
// after the other (non-serial dynamic programming; on chains and trees the dynamic programming of
// OptCNN and Tofu). What a variable's neighbours cost together with the best choice for it becomes
// a table over them; a cap says how large. Variables beyond the cap are fixed to a value that the
// caller gives, as few as it takes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace emplace {

// Which variable goes when. Depends on sizes alone, and so serves many solutions with other costs.
class EliminationOrder {
 public:
  struct Pair {
    std::int32_t a;
    std::int32_t b;
  };

  struct Limits {
    double table = 1 << 20;  // entries of one table, including the variable that is eliminated
    double work = std::numeric_limits<double>::infinity();  // entries of all of them
  };

  // `protection[v]`: of variables that could be fixed, those with less go first.
  void find(std::span<const std::int32_t> sizes, std::span<const Pair> pairs, const Limits& limits,
            std::span<const double> protection);

  // In the order of elimination, with the neighbours that each has then: the one that goes first
  // last.
  std::span<const std::int32_t> order() const { return order_; }
  std::span<const std::int32_t> scope(std::int32_t variable) const { return scopes_[variable]; }
  std::span<const std::int32_t> fixed() const { return fixed_; }
  bool is_fixed(std::int32_t variable) const { return position_[variable] < 0; }
  std::int32_t position(std::int32_t variable) const { return position_[variable]; }
  double work() const { return work_; }

 private:
  double table_size(std::int32_t variable) const;
  void fix_one(std::int32_t variable, std::span<const double> protection);
  void eliminate(std::int32_t variable);
  void detach(std::int32_t variable);
  void push(std::int32_t variable);

  std::vector<double> log_size_;
  std::vector<std::vector<std::int32_t>> neighbours_;  // sorted
  std::vector<std::pair<double, std::int32_t>> heap_;  // by size of the table, may be out of date
  std::vector<std::int32_t> position_;
  std::vector<std::int32_t> order_;
  std::vector<std::vector<std::int32_t>> scopes_;
  std::vector<std::int32_t> fixed_;
  double work_ = 0;
};

// Value is double, or std::int64_t for sums that doubles do not hold exactly.
template <class Value>
class Elimination {
 public:
  // A table over (value of a, value of b), row-major, and the same over (b, a) if there is one.
  struct Term {
    std::int32_t a;
    std::int32_t b;
    const Value* table;
    const Value* turned = nullptr;
  };

  // What is at least this is forbidden.
  static constexpr Value kNever =
      std::is_same_v<Value, double> ? static_cast<Value>(1e30) : static_cast<Value>(1e18);

  // The best values for the variables, given those of the fixed ones in `values`. `unary[v]` has a
  // cost for each value of v. Returns the sum; kNever or more where there is no solution. Nothing,
  // and `values` as they were, where `stop` says so between two variables.
  std::optional<Value> solve(const EliminationOrder& order, std::span<const std::int32_t> sizes,
                             std::span<const Value* const> unary, std::span<const Term> terms,
                             std::vector<std::int32_t>& values, const std::function<bool()>& stop);
  Value solve(const EliminationOrder& order, std::span<const std::int32_t> sizes,
              std::span<const Value* const> unary, std::span<const Term> terms,
              std::vector<std::int32_t>& values) {
    return *solve(order, sizes, unary, terms, values, nullptr);
  }

 private:
  struct Factor {
    std::vector<std::int32_t> scope;  // the first to be eliminated last
    const Value* table;
  };
  struct Level;

  void prepare(const EliminationOrder& order, std::span<const Value* const> unary,
               std::span<const Term> terms, std::span<const std::int32_t> values);
  void eliminate(std::int32_t variable, std::span<const std::int32_t> scope);
  void attach(Factor factor);
  Value* allocate(std::size_t count);
  void choose(std::int32_t variable, std::vector<std::int32_t>& values) const;

  std::span<const std::int32_t> sizes_;
  std::vector<std::vector<Value>> own_;       // the sum of all that concerns one variable alone
  std::vector<std::vector<Factor>> buckets_;  // by the variable of each that goes first
  std::vector<std::vector<Value>> arena_;
  std::size_t arena_block_ = 0;
  std::size_t arena_used_ = 0;
  Value total_ = 0;
};

extern template class Elimination<double>;
extern template class Elimination<std::int64_t>;

}  // namespace emplace
