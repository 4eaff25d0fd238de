// What has a price in the covering bound. An atom is a set of items that every class of devices
// holds together or not at all. A row is a set of atoms that share one price for each nanosecond:
// any prices make a bound, and few of them are found much sooner.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "stream/bound_contents.h"
#include "stream/model.h"

namespace emplace {

class CoveringRows {
 public:
  static constexpr std::uint32_t kNoAtom = std::numeric_limits<std::uint32_t>::max();

  // Each atom is a row. Items that take no time are of no atom.
  CoveringRows(const StreamModel& model, std::span<const ContentGraph* const> classes);

  // Whether each item can be held by some class.
  bool possible() const { return possible_; }
  std::uint32_t num_atoms() const { return static_cast<std::uint32_t>(atom_time_.size()); }
  std::uint32_t num_rows() const { return static_cast<std::uint32_t>(row_time_.size()); }
  std::uint32_t atom_of(std::uint32_t item) const { return atom_of_[item]; }
  std::uint32_t row_of(std::uint32_t atom) const { return row_of_[atom]; }
  double share(std::uint32_t atom) const { return atom_time_[atom] / row_time_[row_of_[atom]]; }
  const std::vector<double>& row_times() const { return row_time_; }

  // Makes rows anew, of at most `most` nanoseconds each unless an atom is longer, of atoms between
  // which much would be sent: few contents part them.
  void merge(const StreamModel& model, double most);

  // Of the items; ascending.
  std::vector<std::uint32_t> atoms_of(std::span<const std::uint32_t> items) const;

  // From now on `round` goes through the atoms as the units of a class are ordered.
  void order_as(const ContentGraph& one);
  // By atom: its price, with all prices of rows multiplied by `scale`, as a whole number. What
  // rounding takes from one is given to the next, so that sums of neighbours are right.
  std::vector<std::int32_t> round(const std::vector<double>& prices, double scale) const;

  // The same prices for other rows of the same model.
  std::vector<double> convert(const CoveringRows& from, const std::vector<double>& prices) const;

 private:
  bool possible_ = true;
  std::vector<std::uint32_t> atom_of_;  // by item
  std::vector<double> item_time_;       // on its fastest device; 0 where it is of no atom
  std::vector<double> atom_time_;
  std::vector<std::uint32_t> order_;   // of the atoms
  std::vector<std::uint32_t> row_of_;  // by atom
  std::vector<double> row_time_;
};

}  // namespace emplace
