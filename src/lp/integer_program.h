// A linear program some of whose variables are whole numbers, built row by row and solved by branch
// and cut (COIN-OR CBC). Deterministic, on one thread, silent.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace emplace {

class IntegerProgram {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  struct Term {
    int column;
    double factor;
  };
  using Row = std::vector<Term>;  // a column may occur more than once

  // Each returns the column's number, counted from 0. `cost` is minimised.
  int add_continuous(double lower, double upper, double cost = 0);
  int add_binary(double cost = 0) { return add_column(0, 1, cost, true); }
  void fix(int column, double value) { lower_[at(column)] = upper_[at(column)] = value; }
  bool is_fixed(int column) const { return lower_[at(column)] == upper_[at(column)]; }

  void at_least(const Row& row, double value) { add_row(row, value, kInfinity); }
  void at_most(const Row& row, double value) { add_row(row, -kInfinity, value); }
  void equals(const Row& row, double value) { add_row(row, value, value); }

  int num_columns() const { return static_cast<int>(lower_.size()); }
  int num_rows() const { return static_cast<int>(row_lower_.size()); }

  struct Limits {
    std::int64_t nodes = std::numeric_limits<int>::max();
    double seconds = 1e9;
    // Cuts, heuristics and looking ahead at every branch, which pay where the linear program says
    // much about the integer one.
    bool thorough = true;
    // Asked between nodes with how many there were.
    std::function<bool(std::int64_t nodes)> stop = {};
    // Asked now and then inside of linear programs too, where `seconds` is looked at as well; what
    // was begun is then without a result.
    std::function<bool()> stop_inside = {};
    // Told of every better solution.
    std::function<void(const std::vector<double>& values)> on_solution = {};
  };
  struct Result {
    bool finished = false;      // the best solution is optimal, or there is none
    std::vector<double> best;   // values of the columns; empty: no solution was found
    double bound = -kInfinity;  // at most the cost of every solution, up to rounding
    std::int64_t nodes = 0;
  };
  // `start` is a solution to begin with, or empty. It is checked; a wrong one is dropped.
  // Throws std::bad_alloc where memory ends, and whatever the limits' functions throw.
  Result solve(const Limits& limits, const std::vector<double>& start = {}) const;

 private:
  Result branch_and_cut(const Limits& limits, const std::vector<double>& start) const;
  static std::size_t at(int column) { return static_cast<std::size_t>(column); }
  int add_column(double lower, double upper, double cost, bool integer);
  void add_row(const Row& row, double lower, double upper);
  bool satisfied_by(const std::vector<double>& values) const;

  std::vector<double> lower_;
  std::vector<double> upper_;
  std::vector<double> cost_;
  std::vector<int> integers_;
  std::vector<double> row_lower_;
  std::vector<double> row_upper_;
  std::vector<int> entry_row_;
  std::vector<int> entry_column_;
  std::vector<double> entry_factor_;
};

// The least multiple of `step` that a sum of such multiples can be, when it is at least `bound` up
// to what the solver may be wrong by.
std::int64_t certain_bound(double bound, std::int64_t step);
// How much of the bound that may be.
inline constexpr double kSolverPrecision = 1e-5;

}  // namespace emplace
