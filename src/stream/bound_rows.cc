#include "stream/bound_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/union_find.h"

namespace emplace {
namespace {

Nanoseconds fastest_time(const StreamModel& model, std::uint32_t item) {
  Nanoseconds fastest = kNever;
  for (const DeviceId device : model.problem().allowed_devices(item)) {
    fastest = std::min(fastest, model.time(item, device));
  }
  return fastest;
}

}  // namespace

CoveringRows::CoveringRows(const StreamModel& model, std::span<const ContentGraph* const> classes)
    : atom_of_(model.num_items(), kNoAtom), item_time_(model.num_items(), 0) {
  std::vector<std::uint8_t> held(model.num_items(), 0);
  for (const ContentGraph* one : classes) {
    for (const auto& items : one->items) {
      for (const std::uint32_t item : items) held[item] = 1;
    }
  }
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  for (std::uint32_t item = 0; item < model.num_items(); ++item) {
    if (held[item] == 0) possible_ = false;
    item_time_[item] = static_cast<double>(fastest_time(model, item));
    if (held[item] == 0 || item_time_[item] == 0) continue;
    std::vector<std::uint32_t> sets;
    for (const ContentGraph* one : classes) sets.push_back(one->set_of[item]);
    atom_of_[item] = known.try_emplace(std::move(sets), num_atoms()).first->second;
    if (atom_of_[item] == num_atoms()) atom_time_.push_back(0);
    atom_time_[atom_of_[item]] += item_time_[item];
  }
  row_of_.resize(num_atoms());
  std::iota(row_of_.begin(), row_of_.end(), 0U);
  order_ = row_of_;
  row_time_ = atom_time_;
}

void CoveringRows::merge(const StreamModel& model, double most) {
  std::vector<std::uint32_t> nets(model.num_nets());
  std::iota(nets.begin(), nets.end(), 0U);
  const auto length = [&](std::uint32_t net) { return model.length_in_class(net, 0); };
  std::stable_sort(nets.begin(), nets.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return length(a) > length(b); });
  // Over items, as those that take no time join others.
  UnionFind sets(model.num_items());
  std::vector<double> time(model.num_items(), 0);
  std::vector<std::uint32_t> first(num_atoms(), kNoAtom);
  for (std::uint32_t item = 0; item < model.num_items(); ++item) {
    const std::uint32_t atom = atom_of_[item];
    if (atom == kNoAtom) continue;
    if (first[atom] == kNoAtom) first[atom] = item;
    sets.unite(first[atom], item);
  }
  for (std::uint32_t atom = 0; atom < num_atoms(); ++atom) {
    time[sets.find(first[atom])] = atom_time_[atom];
  }
  for (const std::uint32_t net : nets) {
    for (const std::uint32_t sink : model.sinks(net)) {
      const std::uint32_t a = sets.find(model.source(net));
      const std::uint32_t b = sets.find(sink);
      const double together = time[a] + time[b];
      if (a == b || together > most) continue;
      sets.unite(a, b);
      time[sets.find(a)] = together;
    }
  }
  row_time_.clear();
  std::vector<std::uint32_t> row_of_set(model.num_items(), kNoAtom);
  for (std::uint32_t atom = 0; atom < num_atoms(); ++atom) {
    std::uint32_t& row = row_of_set[sets.find(first[atom])];
    if (row == kNoAtom) {
      row = num_rows();
      row_time_.push_back(0);
    }
    row_of_[atom] = row;
    row_time_[row] += atom_time_[atom];
  }
}

std::vector<std::uint32_t> CoveringRows::atoms_of(std::span<const std::uint32_t> items) const {
  std::vector<std::uint32_t> result;
  for (const std::uint32_t item : items) {
    if (atom_of_[item] != kNoAtom) result.push_back(atom_of_[item]);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

void CoveringRows::order_as(const ContentGraph& one) {
  std::vector<std::uint8_t> ordered(num_atoms(), 0);
  order_.clear();
  const auto put = [&](std::uint32_t atom) {
    if (std::exchange(ordered[atom], 1) == 0) order_.push_back(atom);
  };
  for (const std::uint32_t unit : one.order) {
    for (const std::uint32_t atom : atoms_of(one.items[unit])) put(atom);
  }
  for (std::uint32_t atom = 0; atom < num_atoms(); ++atom) put(atom);
}

std::vector<std::int32_t> CoveringRows::round(const std::vector<double>& prices,
                                              double scale) const {
  std::vector<std::int32_t> result(num_atoms());
  double exact = 0;
  std::int64_t given = 0;
  for (const std::uint32_t atom : order_) {
    exact += prices[row_of_[atom]] * share(atom) * scale;
    const std::int64_t next = std::max<std::int64_t>(given, std::llround(exact));
    result[atom] = static_cast<std::int32_t>(next - given);
    given = next;
  }
  return result;
}

std::vector<double> CoveringRows::convert(const CoveringRows& from,
                                          const std::vector<double>& prices) const {
  std::vector<double> result(num_rows(), 0);
  for (std::size_t item = 0; item < item_time_.size(); ++item) {
    if (atom_of_[item] == kNoAtom || from.atom_of_[item] == kNoAtom) continue;
    const std::uint32_t row = from.row_of_[from.atom_of_[item]];
    result[row_of_[atom_of_[item]]] += prices[row] * item_time_[item] / from.row_time_[row];
  }
  return result;
}

}  // namespace emplace
