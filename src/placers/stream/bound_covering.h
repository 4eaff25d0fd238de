// The covering bound (bound.h) for one limit: column generation with smoothed dual prices
// (Wentges, International Transactions in Operational Research 4(2), 1997).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/units.h"

#include "placer/budget.h"

#include "placers/stream/bound_classes.h"
#include "placers/stream/bound_contents.h"
#include "placers/stream/bound_master.h"
#include "placers/stream/bound_pricing.h"
#include "placers/stream/model.h"

namespace emplace {

class StreamCovering {
 public:
  // `lower` is a bound that is known already, at most `limit`. Without `count_memory` contents may
  // need more than there is, which makes tables smaller.
  StreamCovering(const StreamModel& model, const std::vector<DeviceClass>& classes,
                 Nanoseconds lower, Nanoseconds limit, bool count_memory);

  // Whether memory makes any difference.
  bool counts_memory() const;
  // Begins where another one, which differs in `count_memory` or `lower` alone, has ended.
  void begin_with(const StreamCovering& other) { center_ = other.center_; }

  // Improves the bound up to limit + 1, which says that no placement is within the limit. Calls
  // `on_improvement` after each change. `rounds` counts on.
  void run(const Budget& budget, std::int64_t& rounds, const std::function<void()>& on_improvement);

  Nanoseconds lower() const { return lower_; }
  std::uint32_t nets_eased() const;

 private:
  struct Class {
    std::int64_t size;  // devices
    ContentGraph graph;
    std::vector<std::vector<std::uint32_t>> rows;  // by unit
    std::unique_ptr<ContentPricer> pricer;
    std::int32_t top = 0;
  };
  struct Integers {  // prices as the tables take them
    std::vector<std::int32_t> rows;
    std::int64_t traffic = 0;
    std::int64_t sum = 0;
  };
  enum class Outcome { kStopped, kProven, kImproved, kNothing };

  void add_rows(const StreamModel& model);
  void add_pricers(const std::vector<DeviceClass>& classes, bool count_memory);
  CoveringPrices prices_by_time() const;
  Integers to_integers(const CoveringPrices& prices, double resolution) const;
  bool fill_tables(const CoveringPrices& prices, const Budget& budget, std::int64_t rounds);
  std::int64_t capacity(Nanoseconds period) const;
  Nanoseconds proven() const;
  Outcome price(const CoveringPrices& prices, const CoveringPrices& master_prices,
                const Budget& budget, std::int64_t& rounds);
  Outcome price_center(const Budget& budget, std::int64_t& rounds);
  Outcome improve(const CoveringSolution& solution, const Budget& budget, std::int64_t& rounds);
  CoveringColumn best_column(std::uint32_t device_class, Nanoseconds period) const;
  static double gain(const CoveringColumn& column, const CoveringPrices& prices);
  int add_columns(const CoveringPrices& master_prices);
  void center_on(const CoveringPrices& prices);
  bool choose_target();
  void bound_prices();
  bool finer(const CoveringSolution& solution);
  bool step(const Budget& budget, std::int64_t& rounds);

  Nanoseconds lower_;
  Nanoseconds limit_;
  Nanoseconds target_;       // the period that is to be refuted
  Nanoseconds unrefutable_;  // limit + 1, or a period that the linear program allows
  std::int64_t traffic_periods_;
  std::vector<std::uint32_t> row_of_;  // by item; kNoRow: it takes no time
  std::vector<double> row_time_;       // on its fastest device
  bool possible_ = true;               // each item is in some content
  std::vector<Class> classes_;
  std::unique_ptr<CoveringMaster> master_;
  std::vector<CoveringColumn> later_;  // for targets that may follow

  double resolution_ = 0;  // the value of a device's content, about
  Integers integers_;      // those of the tables
  double headroom_;        // of tables, above what a device must hold
  double freedom_;         // of the master's prices: the part by which they may leave the center
  CoveringPrices center_;  // the best so far for the target
  double center_devices_ = 0;
};

}  // namespace emplace
