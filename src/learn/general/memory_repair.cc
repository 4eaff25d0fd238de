#include "learn/general/memory_repair.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "learn/units/coordinates.h"
#include "learn/units/groupings.h"

namespace emplace::learn {
namespace {

// Of a device's memory: what it is to hold at most, by an estimate that simulated peaks have set
// right. Less at first than at last, when other devices have no room for more.
constexpr double kFirstShare = 0.97;
constexpr double kLastShare = 1;
constexpr std::int64_t kMostUnits = 300;

// At most, and so few that what takes no time, as parameters do, is part of what reads it.
std::int64_t num_units(const Problem& problem) {
  std::vector<bool> takes_time(problem.num_groups(), false);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    if (problem.mean_duration(op) > 0) takes_time[problem.group_of(op)] = true;
  }
  const std::int64_t count = std::count(takes_time.begin(), takes_time.end(), true);
  return std::clamp<std::int64_t>(count, 1, kMostUnits);
}

// One round of moves.
class Moves {
 public:
  Moves(const UnitGraph& units, const std::vector<double>& kept, const std::vector<double>& places,
        std::span<const DeviceId> used, const std::vector<Bytes>& peaks, double share,
        std::vector<DeviceId> devices)
      : units_(units),
        kept_(kept),
        places_(places),
        used_(used),
        devices_(std::move(devices)),
        room_(units_.num_devices()),
        means_(units_.num_devices()) {
    measure(peaks, share);
  }

  // Whether anything moved.
  bool move() {
    bool moved = false;
    for (DeviceId device = 0; device < units_.num_devices(); ++device) {
      if (too_full_[device]) moved = empty(device) || moved;
    }
    return moved;
  }
  Placement placement() const { return units_.expand(devices_); }

 private:
  struct Candidate {
    double regret;
    UnitId unit;
  };

  void measure(const std::vector<Bytes>& peaks, double share) {
    std::vector<double> held(room_.size());
    std::vector<double> weights(room_.size());
    for (UnitId unit = 0; unit < units_.size(); ++unit) {
      const DeviceId device = devices_[unit];
      const double weight = 1 + static_cast<double>(units_.mean_duration(unit));
      held[device] += kept_[unit];
      means_[device] += weight * places_[unit];
      weights[device] += weight;
    }
    for (DeviceId device = 0; device < room_.size(); ++device) {
      too_full_.push_back(peaks[device] > units_.problem().cluster().device(device).memory);
      means_[device] = weights[device] > 0 ? means_[device] / weights[device] : kNowhere;
      const Bytes memory = units_.problem().cluster().device(device).memory;
      if (memory == kUnlimited) {
        room_[device] = std::numeric_limits<double>::infinity();
        continue;
      }
      const auto capacity = static_cast<double>(memory);
      const auto peak = static_cast<double>(peaks[device]);
      const double scale = peak > 0 && held[device] > 0 ? held[device] / peak : 1;
      room_[device] = scale * (share * capacity - peak);
    }
  }

  // What is on no device yet is near to everything.
  double distance(UnitId unit, DeviceId device) const {
    return means_[device] == kNowhere ? 0 : std::abs(places_[unit] - means_[device]);
  }

  // Nobody where there is no room.
  DeviceId nearest(UnitId unit) const {
    DeviceId best = kNoDevice;
    for (const DeviceId device : used_) {
      if (room_[device] <= 0 || room_[device] < kept_[unit]) continue;
      if (device == devices_[unit] || !units_.allowed(unit, device)) continue;
      if (best == kNoDevice || distance(unit, device) < distance(unit, best)) best = device;
    }
    return best;
  }

  bool empty(DeviceId device) {
    std::vector<Candidate> candidates;
    for (UnitId unit = 0; unit < units_.size(); ++unit) {
      if (devices_[unit] != device) continue;
      const DeviceId to = nearest(unit);
      if (to == kNoDevice) continue;
      candidates.push_back({distance(unit, to) - distance(unit, device), unit});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.regret < b.regret; });
    bool moved = false;
    for (const Candidate& candidate : candidates) {
      if (room_[device] >= 0) break;
      const DeviceId to = nearest(candidate.unit);
      if (to == kNoDevice) continue;
      devices_[candidate.unit] = to;
      room_[to] -= kept_[candidate.unit];
      room_[device] += kept_[candidate.unit];
      moved = moved || kept_[candidate.unit] > 0;
    }
    return moved;
  }

  static constexpr double kNowhere = -1;

  const UnitGraph& units_;
  const std::vector<double>& kept_;
  const std::vector<double>& places_;
  std::span<const DeviceId> used_;
  std::vector<DeviceId> devices_;
  std::vector<bool> too_full_;
  std::vector<double> room_;   // by device, in kept bytes; negative: more than its share
  std::vector<double> means_;  // by device: of the places of its units
};

}  // namespace

MemoryRepair::MemoryRepair(const Problem& problem)
    : units_(group_to_size(problem, num_units(problem))), kept_(kept_bytes(units_)) {
  places_ = coordinates_of(units_, order_along(units_, Line::kModules), kept_).time;
}

void MemoryRepair::operator()(Placement placement, std::span<const DeviceId> used, int tries,
                              Environment& environment) const {
  std::vector<Bytes> peaks(environment.problem().num_devices());
  for (int attempt = 0; attempt <= tries; ++attempt) {
    if (environment.spent() || environment.affordable(2) < 2) return;
    const SampleOutcome outcome = environment.evaluate({placement}).get().front();
    if (!outcome.valid || outcome.fits()) return;
    environment.context().evaluator().evaluate(placement, {}, peaks);
    const double done = tries > 0 ? static_cast<double>(attempt) / tries : 0;
    Moves moves(units_, kept_, places_, used, peaks,
                kFirstShare + done * (kLastShare - kFirstShare), units_.contract(placement));
    if (!moves.move()) return;
    placement = moves.placement();
  }
}

}  // namespace emplace::learn
