// The covering bound (bound.h) for one limit: column generation with smoothed dual prices
// (Wentges, International Transactions in Operational Research 4(2), 1997).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <emplace/search.h>

#include "base/units.h"

#include "stream/bound_classes.h"
#include "stream/bound_master.h"
#include "stream/bound_rows.h"
#include "stream/bound_tables.h"
#include "stream/model.h"

namespace emplace {

class StreamCovering {
 public:
  // `lower` is a bound that is known already, at most `limit`. Without `count_memory` contents may
  // need more than there is, which makes tables smaller. Begins with the prices at which one
  // `before` it, for the same model, has arrived.
  StreamCovering(const StreamModel& model, const std::vector<DeviceClass>& classes,
                 Nanoseconds lower, Nanoseconds limit, bool count_memory,
                 const StreamCovering* before);

  // Whether memory makes any difference.
  bool counts_memory() const { return tables_ != nullptr && tables_->counts_memory(); }
  // Periods from this one on are of no more interest.
  void forget_from(Nanoseconds period) {
    last_ = std::min(last_, period);
    unrefutable_ = std::min(unrefutable_, period);
  }

  // Goes on with the bound, up to limit + 1, which says that no placement is within the limit. An
  // evaluation of the budget is a round of pricing, counted in `rounds`. False when nothing is left
  // to do, or the budget is spent.
  bool step(const Budget& budget, std::int64_t& rounds);

  Nanoseconds lower() const { return lower_; }
  // Of all tables filled so far: the effort.
  std::int64_t cells() const { return tables_ == nullptr ? 0 : tables_->cells(); }
  std::uint32_t nets_eased() const { return tables_ == nullptr ? 0 : tables_->nets_eased(); }

 private:
  enum class Outcome { kStopped, kProven, kImproved, kNothing };

  void merge_rows();
  void begin_master();
  bool split_rows();
  CoveringPrices prices_by_time() const;
  Outcome price(const CoveringPrices& prices, const CoveringPrices& master_prices,
                const Budget& budget, std::int64_t& rounds);
  Outcome price_center(const Budget& budget, std::int64_t& rounds);
  Outcome improve(const CoveringSolution& solution, const Budget& budget, std::int64_t& rounds);
  CoveringColumn column(const CoveringContent& content) const;
  bool add(const CoveringContent& content);
  static double gain(const CoveringColumn& column, const CoveringPrices& prices);
  int add_columns(const CoveringPrices& master_prices);
  void center_on(const CoveringPrices& prices);
  bool choose_target();
  void bound_prices();
  bool finer(const CoveringSolution& solution);

  Nanoseconds lower_;
  Nanoseconds limit_;
  Nanoseconds target_;       // the period that is to be refuted
  Nanoseconds unrefutable_;  // `last_`, or a period that the linear program allows
  Nanoseconds last_;         // limit + 1, or the first period of no interest
  std::int64_t traffic_periods_;
  const StreamModel& model_;
  std::optional<CoveringRows> rows_;
  std::int64_t rows_per_device_ = 0;        // at least so many; 0: each atom is a row
  std::unique_ptr<CoveringTables> tables_;  // null where the rows are not possible
  std::unique_ptr<CoveringMaster> master_;
  std::vector<CoveringContent> contents_;  // the master's
  std::vector<CoveringContent> later_;     // for targets that may follow

  TableDetail detail_;
  double freedom_;         // of the master's prices: the part by which they may leave the center
  CoveringPrices center_;  // the best so far for the target
  double center_devices_ = 0;
  int steps_since_better_ = 0;  // than the center was
};

}  // namespace emplace
