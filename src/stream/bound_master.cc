// The linear program stays in the solver from one call to the next: contents become columns, and
// those whose load is above the period are held at 0 rather than taken out. Bounds on the prices of
// the rows are, in the dual, what columns with one entry cost: one to hold less of a row, one to
// hold more. `held_back` says that such a column is in use, so that the prices at hand are not
// those of the program itself. Floating point (CLP) throughout: prices are proposals, which the
// tables then judge exactly. One solve is a warm-started simplex.
#include "stream/bound_master.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>

#include "base/check.h"

#include "lp/solver_memory.h"

namespace emplace {
namespace {

constexpr double kMostMore = 1000;  // keeps the program bounded whatever the prices' bounds
constexpr double kUsed = 1e-9;

}  // namespace

class CoveringMaster::Program {
 public:
  Program(std::uint32_t num_rows, std::span<const std::int64_t> class_sizes,
          std::int64_t traffic_periods);

  bool add(const CoveringColumn& column);
  void set_price_bounds(const std::vector<double>& lower, const std::vector<double>& upper);
  CoveringSolution solve(Nanoseconds period, double seconds);

 private:
  int less_column(int row) const { return 1 + row; }
  int more_column(int row) const { return 1 + num_rows_ + row; }
  int class_row(std::uint32_t device_class) const {
    return num_rows_ + static_cast<int>(device_class);
  }
  int traffic_row() const { return num_rows_ + num_classes_; }
  void start();
  void set_period(Nanoseconds period);
  void append(const CoveringColumn& column);

  int num_rows_;
  int num_classes_;
  std::vector<std::int64_t> class_sizes_;
  std::int64_t traffic_periods_;
  double unit_ = 0;  // of traffic: the first period, so that numbers are near 1
  Nanoseconds period_ = 0;
  int first_column_;  // of the contents
  using Key =
      std::tuple<std::uint32_t, Nanoseconds, std::vector<std::uint32_t>, std::vector<double>>;
  std::set<Key> known_;
  std::vector<CoveringColumn> columns_;
  std::size_t appended_ = 0;  // columns in the solver
  ClpSimplex solver_;
};

CoveringMaster::Program::Program(std::uint32_t num_rows, std::span<const std::int64_t> class_sizes,
                                 std::int64_t traffic_periods)
    : num_rows_(static_cast<int>(num_rows)),
      num_classes_(static_cast<int>(class_sizes.size())),
      class_sizes_(class_sizes.begin(), class_sizes.end()),
      traffic_periods_(traffic_periods),
      first_column_(1 + 2 * num_rows_) {
  solver_.setLogLevel(0);
  start();
}

bool CoveringMaster::Program::add(const CoveringColumn& column) {
  if (!known_.insert({column.device_class, column.load, column.rows, column.shares}).second) {
    return false;
  }
  columns_.push_back(column);
  return true;
}

// Column 0 is z. Then, for each row, a way to hold less of it, whose cost is the upper bound of the
// row's price, and one to hold more of it, which pays the lower bound. To begin with a price is at
// most that of all devices, which is above what any content can cost.
void CoveringMaster::Program::start() {
  const int num_solver_rows = num_rows_ + num_classes_ + (traffic_periods_ > 0 ? 1 : 0);
  std::vector<int> rows;
  std::vector<int> columns;
  std::vector<double> elements;
  const auto put = [&](int row, int column, double element) {
    rows.push_back(row);
    columns.push_back(column);
    elements.push_back(element);
  };
  for (std::uint32_t i = 0; i < class_sizes_.size(); ++i) {
    put(class_row(i), 0, static_cast<double>(class_sizes_[i]));
  }
  if (traffic_periods_ > 0) put(traffic_row(), 0, static_cast<double>(traffic_periods_));
  for (int row = 0; row < num_rows_; ++row) {
    put(row, less_column(row), 1);
    put(row, more_column(row), -1);
  }
  CoinPackedMatrix matrix(true, rows.data(), columns.data(), elements.data(),
                          static_cast<CoinBigIndex>(elements.size()));
  matrix.setDimensions(num_solver_rows, first_column_);
  std::vector<double> lower(static_cast<std::size_t>(num_solver_rows), 0.0);
  std::fill(lower.begin(), lower.begin() + num_rows_, 1.0);
  std::vector<double> upper(static_cast<std::size_t>(first_column_), COIN_DBL_MAX);
  std::fill(upper.begin() + more_column(0), upper.end(), kMostMore);
  std::vector<double> costs(static_cast<std::size_t>(first_column_), 1.0);
  std::fill(costs.begin() + more_column(0), costs.end(), 0.0);
  solver_.loadProblem(matrix, nullptr, upper.data(), costs.data(), lower.data(), nullptr);
}

void CoveringMaster::Program::set_price_bounds(const std::vector<double>& lower,
                                               const std::vector<double>& upper) {
  for (int row = 0; row < num_rows_; ++row) {
    const auto i = static_cast<std::size_t>(row);
    solver_.setObjectiveCoefficient(less_column(row), std::min(1.0, upper[i]));
    solver_.setObjectiveCoefficient(more_column(row), -std::max(0.0, lower[i]));
  }
}

void CoveringMaster::Program::append(const CoveringColumn& column) {
  std::vector<int> rows;
  for (const std::uint32_t row : column.rows) rows.push_back(static_cast<int>(row));
  std::vector<double> elements = column.shares;
  rows.push_back(class_row(column.device_class));
  elements.push_back(-1);
  if (traffic_periods_ > 0 && column.traffic > 0) {
    rows.push_back(traffic_row());
    elements.push_back(-static_cast<double>(column.traffic) / unit_);
  }
  const double upper = column.load <= period_ ? COIN_DBL_MAX : 0;
  solver_.addColumn(static_cast<int>(rows.size()), rows.data(), elements.data(), 0, upper, 0);
}

void CoveringMaster::Program::set_period(Nanoseconds period) {
  period_ = period;
  if (traffic_periods_ > 0) {
    solver_.modifyCoefficient(
        traffic_row(), 0,
        static_cast<double>(traffic_periods_) * static_cast<double>(period) / unit_);
  }
  for (std::size_t i = 0; i < appended_; ++i) {
    const double upper = columns_[i].load <= period ? COIN_DBL_MAX : 0;
    solver_.setColumnUpper(first_column_ + static_cast<int>(i), upper);
  }
}

CoveringSolution CoveringMaster::Program::solve(Nanoseconds period, double seconds) {
  if (unit_ == 0) unit_ = static_cast<double>(std::max<Nanoseconds>(1, period));
  if (period != period_) set_period(period);
  for (; appended_ < columns_.size(); ++appended_) append(columns_[appended_]);
  solver_.setMaximumWallSeconds(seconds);
  solver_.primal();
  constexpr int kOutOfTime = 3;
  if (solver_.status() != 0 && solver_.status() != kOutOfTime) {
    solver_.allSlackBasis(true);  // the last basis may be what it cannot start from
    solver_.primal();
  }
  CoveringSolution result;
  result.solved = solver_.status() == 0;
  if (!result.solved) return result;
  result.devices = solver_.objectiveValue();
  const double* values = solver_.primalColumnSolution();
  const double* costs = solver_.objective();
  for (int column = 1; column < first_column_; ++column) {
    result.held_back = result.held_back || (values[column] > kUsed && costs[column] != 0);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (values[first_column_ + static_cast<int>(i)] <= kUsed) continue;
    result.longest = std::max(result.longest, columns_[i].load);
  }
  const double* duals = solver_.dualRowSolution();
  for (int row = 0; row < num_rows_; ++row) {
    result.prices.rows.push_back(std::max(0.0, duals[row]));
  }
  for (int i = 0; i < num_classes_; ++i) {
    result.prices.classes.push_back(std::max(0.0, duals[num_rows_ + i]));
  }
  if (traffic_periods_ > 0) result.prices.traffic = std::max(0.0, duals[traffic_row()]) / unit_;
  return result;
}

// After a failure the program is lost with the solver in it.
void CoveringMaster::call(const std::function<void(Program&)>& work) {
  Program* const program = program_.release();
  EMPLACE_CHECK(program != nullptr);
  call_solver([&] { work(*program); });
  program_.reset(program);
}

CoveringMaster::CoveringMaster(std::uint32_t num_rows, std::span<const std::int64_t> class_sizes,
                               std::int64_t traffic_periods) {
  call_solver(
      [&] { program_ = std::make_unique<Program>(num_rows, class_sizes, traffic_periods); });
}

CoveringMaster::~CoveringMaster() = default;

bool CoveringMaster::add(const CoveringColumn& column) {
  return program_->add(column);
}

void CoveringMaster::set_price_bounds(const std::vector<double>& lower,
                                      const std::vector<double>& upper) {
  call([&](Program& program) { program.set_price_bounds(lower, upper); });
}

CoveringSolution CoveringMaster::solve(Nanoseconds period, double seconds) {
  CoveringSolution result;
  call([&](Program& program) { result = program.solve(period, seconds); });
  return result;
}

}  // namespace emplace
