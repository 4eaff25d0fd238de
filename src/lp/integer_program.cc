#include "lp/integer_program.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>

#include <CbcEventHandler.hpp>
#include <CbcHeuristic.hpp>
#include <CbcHeuristicDiveCoefficient.hpp>
#include <CbcHeuristicRINS.hpp>
#include <CbcModel.hpp>
#include <CglClique.hpp>
#include <CglKnapsackCover.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>

#include "base/check.h"

#include "lp/solver_memory.h"

namespace emplace {
namespace {

constexpr double kTolerance = 1e-7;
constexpr double kLeastError = 0.01;
constexpr int kSeed = 1;
constexpr int kCutsEveryNodes = -10;  // negative: only while they help at the root

// What the solver's copies of the handler share.
struct Watch {
  const IntegerProgram::Limits& limits;
  double best = IntegerProgram::kInfinity;
  bool stopped = false;
  bool stopped_inside = false;         // of a linear program, whose result then says nothing
  std::exception_ptr error = nullptr;  // of what it was told
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  void look_at(const CbcModel& model) {
    const double* values = model.bestSolution();
    if (values == nullptr || !(model.getObjValue() < best)) return;
    best = model.getObjValue();
    if (!limits.on_solution) return;
    tell([&] { limits.on_solution({values, values + model.getNumCols()}); });
  }

  // Errors wait until the solver has ended.
  template <typename Listener>
  void tell(const Listener& listener) {
    const OutsideSolver outside;
    try {
      listener();
    } catch (...) {
      error = std::current_exception();
      stopped = true;
    }
  }
};

class Handler final : public CbcEventHandler {
 public:
  explicit Handler(Watch& watch) : watch_(watch) {}
  CbcEventHandler* clone() const override { return new Handler(*this); }

  CbcAction event(CbcEvent which) override {
    // Heuristics solve small programs of their own, in other columns.
    if (model_->parentModel() != nullptr) return watch_.stopped ? stop : noAction;
    if (which == node || which == solution || which == heuristicSolution) watch_.look_at(*model_);
    if (!watch_.stopped && watch_.limits.stop) {
      watch_.tell([this] { watch_.stopped = watch_.limits.stop(model_->getNodeCount()); });
    }
    return watch_.stopped ? stop : noAction;
  }

 private:
  Watch& watch_;
};

// One linear program can take longer than all the time there is.
class LinearHandler final : public ClpEventHandler {
 public:
  explicit LinearHandler(Watch& watch) : watch_(watch) {}
  ClpEventHandler* clone() const override { return new LinearHandler(*this); }

  int event(Event which) override {
    constexpr int kGoOn = -1;
    constexpr int kStop = 5;
    constexpr int kBetweenLooks = 32;
    if (which != endOfIteration || ++iterations_ % kBetweenLooks != 0) return kGoOn;
    if (!watch_.stopped_inside && !watch_.error && !is_late()) return kGoOn;
    watch_.stopped = watch_.stopped_inside = true;
    return kStop;
  }

 private:
  bool is_late() {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - watch_.start;
    if (taken.count() > watch_.limits.seconds) return true;
    bool late = false;
    if (watch_.limits.stop_inside) {
      watch_.tell([&] { late = watch_.limits.stop_inside(); });
    }
    return late || watch_.error != nullptr;
  }

  Watch& watch_;
  int iterations_ = 0;
};

void add_cuts(CbcModel& model) {
  CglKnapsackCover knapsack;
  CglMixedIntegerRounding2 rounding;
  CglClique clique;
  clique.setStarCliqueReport(false);
  clique.setRowCliqueReport(false);
  model.addCutGenerator(&knapsack, kCutsEveryNodes, "knapsack");
  model.addCutGenerator(&rounding, kCutsEveryNodes, "rounding");
  model.addCutGenerator(&clique, kCutsEveryNodes, "clique");
}

void add_heuristics(CbcModel& model) {
  CbcHeuristicDiveCoefficient dive(model);
  CbcHeuristicRINS neighbourhood(model);
  neighbourhood.setHowOften(50);
  model.addHeuristic(&dive);
  model.addHeuristic(&neighbourhood);
}

}  // namespace

int IntegerProgram::add_continuous(double lower, double upper, double cost) {
  return add_column(lower, upper, cost, false);
}

int IntegerProgram::add_column(double lower, double upper, double cost, bool integer) {
  if (integer) integers_.push_back(num_columns());
  lower_.push_back(lower);
  upper_.push_back(upper);
  cost_.push_back(cost);
  return num_columns() - 1;
}

void IntegerProgram::add_row(const Row& row, double lower, double upper) {
  std::map<int, double> sums;
  for (const Term& term : row) sums[term.column] += term.factor;
  for (const auto& [column, factor] : sums) {
    if (factor == 0) continue;
    entry_row_.push_back(num_rows());
    entry_column_.push_back(column);
    entry_factor_.push_back(factor);
  }
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
}

bool IntegerProgram::satisfied_by(const std::vector<double>& values) const {
  std::vector<double> sums(row_lower_.size(), 0);
  for (std::size_t i = 0; i < entry_row_.size(); ++i) {
    sums[at(entry_row_[i])] += entry_factor_[i] * values[at(entry_column_[i])];
  }
  const auto within = [](double value, double lower, double upper) {
    const double slack = kTolerance * std::max(1.0, std::abs(value));
    return value >= lower - slack && value <= upper + slack;
  };
  for (std::size_t row = 0; row < sums.size(); ++row) {
    if (!within(sums[row], row_lower_[row], row_upper_[row])) return false;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!within(values[i], lower_[i], upper_[i])) return false;
  }
  return true;
}

IntegerProgram::Result IntegerProgram::solve(const Limits& limits,
                                             const std::vector<double>& start) const {
  Result result;
  call_solver([&] { result = branch_and_cut(limits, start); });
  return result;
}

IntegerProgram::Result IntegerProgram::branch_and_cut(const Limits& limits,
                                                      const std::vector<double>& start) const {
  CoinPackedMatrix matrix(false, entry_row_.data(), entry_column_.data(), entry_factor_.data(),
                          static_cast<CoinBigIndex>(entry_row_.size()));
  matrix.setDimensions(num_rows(), num_columns());
  OsiClpSolverInterface solver;
  solver.messageHandler()->setLogLevel(0);
  solver.loadProblem(matrix, lower_.data(), upper_.data(), cost_.data(), row_lower_.data(),
                     row_upper_.data());
  for (const int column : integers_) solver.setInteger(column);
  solver.setHintParam(OsiDoReducePrint, true, OsiHintTry);

  Watch watch{.limits = limits};
  LinearHandler inside(watch);
  solver.getModelPtr()->passInEventHandler(&inside);

  CbcModel model(solver);
  model.setLogLevel(0);
  model.solver()->messageHandler()->setLogLevel(0);
  model.setRandomSeed(kSeed);
  model.setUseElapsedTime(true);
  model.setMaximumSeconds(limits.seconds);
  model.setMaximumNodes(
      static_cast<int>(std::clamp<std::int64_t>(limits.nodes, 0, std::numeric_limits<int>::max())));
  CbcRounding rounding(model);
  model.addHeuristic(&rounding);
  if (limits.thorough) {
    add_cuts(model);
    add_heuristics(model);
  } else {
    model.setNumberStrong(0);
  }
  Handler handler(watch);
  model.passInEventHandler(&handler);
  Result result;
  if (!start.empty()) {
    EMPLACE_CHECK(start.size() == lower_.size());
    if (satisfied_by(start)) {
      double cost = 0;
      for (std::size_t i = 0; i < start.size(); ++i) cost += cost_[i] * start[i];
      model.setBestSolution(start.data(), num_columns(), cost, false);
      watch.best = cost;
      result.best = start;
    }
  }
  model.branchAndBound();
  watch.look_at(model);
  if (watch.error) std::rethrow_exception(watch.error);
  if (const double* values = model.bestSolution()) {
    result.best.assign(values, values + num_columns());
  }
  result.nodes = model.getNodeCount();
  result.finished = !watch.stopped && model.status() == 0 && !model.isAbandoned();
  if (result.finished) {
    result.bound = result.best.empty() ? kInfinity : model.getObjValue();
  } else if (!watch.stopped_inside && !model.isAbandoned() &&
             model.getBestPossibleObjValue() > -1e50) {
    result.bound = model.getBestPossibleObjValue();
  }
  return result;
}

std::int64_t certain_bound(double bound, std::int64_t step) {
  const double least = bound - std::max(bound * kSolverPrecision, kLeastError);
  if (!(least > 0) || least > 0x1p62) return 0;
  const auto whole = static_cast<std::int64_t>(std::ceil(least));
  return (whole + step - 1) / step * step;
}

}  // namespace emplace
