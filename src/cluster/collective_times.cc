#include "cluster/collective_times.h"

#include <array>
#include <iterator>
#include <utility>

namespace emplace {
namespace {

constexpr std::array<std::pair<std::string_view, Collective>, 3> kCollectives{{
    {"all-reduce", Collective::kAllReduce},
    {"reduce-scatter", Collective::kReduceScatter},
    {"all-gather", Collective::kAllGather},
}};

}  // namespace

std::string_view collective_name(Collective op) {
  return kCollectives[static_cast<std::size_t>(op)].first;
}

std::optional<Collective> parse_collective(std::string_view name) {
  for (const auto& [known, op] : kCollectives) {
    if (known == name) return op;
  }
  return std::nullopt;
}

bool CollectiveTimes::add(Collective op, int devices, int machines, Bytes bytes,
                          double microseconds) {
  return curves_[{op, devices, machines}].try_emplace(bytes, microseconds).second;
}

std::optional<double> CollectiveTimes::nanoseconds(Collective op, int devices, int machines,
                                                   double bytes) const {
  for (const int on : {machines, kAnyMachines}) {
    if (const auto own = known(op, devices, on, bytes)) return own;
    if (op == Collective::kAllReduce) continue;
    if (const auto both = known(Collective::kAllReduce, devices, on, bytes)) return *both / 2;
  }
  return std::nullopt;
}

std::optional<double> CollectiveTimes::known(Collective op, int devices, int machines,
                                             double bytes) const {
  const auto found = curves_.find({op, devices, machines});
  if (found == curves_.end()) return std::nullopt;
  const Curve& curve = found->second;
  const auto above = curve.lower_bound(static_cast<Bytes>(bytes));
  if (above == curve.begin()) return above->second * 1000;
  const auto below = std::prev(above);
  const auto from = static_cast<double>(below->first);
  if (above == curve.end()) return below->second * 1000 * bytes / from;
  const double share = (bytes - from) / (static_cast<double>(above->first) - from);
  return 1000 * (below->second + share * (above->second - below->second));
}

}  // namespace emplace
