// What all devices together can hold within a period, in values: the tables of all classes
// (bound_pricing.h), filled for prices that are made whole numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "base/units.h"

#include "stream/bound_classes.h"
#include "stream/bound_contents.h"
#include "stream/bound_master.h"
#include "stream/bound_pricing.h"
#include "stream/bound_rows.h"

namespace emplace {

struct CoveringContent {
  std::uint32_t device_class;
  std::vector<std::uint32_t> atoms;  // ascending
  Nanoseconds load;
  Nanoseconds traffic;
};

// How fine the tables are.
struct TableDetail {
  double resolution = 0;  // the value of a device's content, about
  double headroom = 1.5;  // of values, above what a device must hold
};

class CoveringTables {
 public:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

  // For contents whose load is within the limit; `graphs` are those of the classes.
  CoveringTables(const std::vector<DeviceClass>& classes, std::vector<ContentGraph> graphs,
                 const CoveringRows& rows, Nanoseconds limit, bool count_memory,
                 std::int64_t traffic_periods);

  const std::vector<std::int64_t>& class_sizes() const { return sizes_; }
  const ContentGraph& graph(std::size_t device_class) const { return classes_[device_class].graph; }
  bool counts_memory() const;  // it can run out
  std::uint32_t nets_eased() const;
  double first_resolution() const { return first_resolution_; }
  std::int64_t cells() const { return cells_; }  // filled so far: the effort

  // Coarser where tables would become too large. False when `stop` said so; there are no tables
  // then.
  bool fill(const CoveringRows& rows, const CoveringPrices& prices, const TableDetail& detail,
            const std::function<bool()>& stop);

  // Of all atoms, in values.
  std::int64_t sum() const { return sum_; }
  // At least what all devices together can hold with this period. kUnknown: much more than there
  // is.
  std::int64_t capacity(Nanoseconds period) const;
  // The first period with which the devices can hold everything; limit + 1: none.
  Nanoseconds proven() const;
  // Of those within the period, the one worth most.
  CoveringContent best_content(std::uint32_t device_class, Nanoseconds period) const;

 private:
  struct Class {
    ContentGraph graph;
    std::vector<std::vector<std::uint32_t>> atoms = {};  // by unit
    std::unique_ptr<ContentPricer> pricer = nullptr;
    ContentValues values = {};
    std::int32_t top = 0;
  };

  void set_values(const CoveringRows& rows, const CoveringPrices& prices, double resolution);
  bool set_tops(double headroom);

  Nanoseconds limit_;
  std::int64_t traffic_periods_;
  std::vector<std::int64_t> sizes_;  // by class: devices
  std::vector<Class> classes_;
  double first_resolution_ = 0;
  std::int64_t traffic_price_ = 0;
  std::int64_t sum_ = 0;
  std::int64_t cells_ = 0;
};

}  // namespace emplace
