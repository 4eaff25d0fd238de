// The master problem of the covering bound: how many times the devices are needed, at least, to
// hold every row (bound_rows.h) with the contents known so far. Dual prices of the rows say what
// a new content must be worth.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"

namespace emplace {

struct CoveringColumn {
  std::uint32_t device_class = 0;
  std::vector<std::uint32_t> rows;  // ascending
  std::vector<double> shares;       // of them, at most 1 each
  Nanoseconds load = 0;
  Nanoseconds traffic = 0;
};

struct CoveringPrices {
  std::vector<double> rows;     // none negative
  std::vector<double> classes;  // what one device of the class costs
  double traffic = 0;           // for each nanosecond
};

struct CoveringSolution {
  bool solved = false;
  bool held_back = false;   // by the bounds on the prices
  double devices = 0;       // times the devices there are
  Nanoseconds longest = 0;  // load of the contents in use
  CoveringPrices prices;
};

// minimise z, where class c has m_c devices, and contents of at most `traffic_periods` periods of
// traffic may be held:
//   sum of share_rS x_S over contents S               >= 1    for each row r
//   m_c z - sum of x_S over contents of class c       >= 0    for each class
//   periods * period * z - sum of traffic_S x_S       >= 0    where traffic is limited
class CoveringMaster {
 public:
  CoveringMaster(std::uint32_t num_rows, std::span<const std::int64_t> class_sizes,
                 std::int64_t traffic_periods);
  ~CoveringMaster();

  // False where it is known already.
  bool add(const CoveringColumn& column);
  // From now on the prices of the rows stay between these, as far as the linear program allows.
  void set_price_bounds(const std::vector<double>& lower, const std::vector<double>& upper);
  // With the contents whose load is within `period`. Not solved where it takes longer than
  // `seconds`.
  CoveringSolution solve(Nanoseconds period, double seconds);

 private:
  class Program;
  void call(const std::function<void(Program&)>& work);

  std::unique_ptr<Program> program_;
};

}  // namespace emplace
