// m-TOPO: ops in topological order fill one device after another, each up to an equal share of the
// memory plus the largest single need. Jeon et al.: "Baechi: Fast Device Placement of Machine
// Learning Graphs", SoCC 2020.
#include <algorithm>

#include "placer/placer.h"

#include "placers/common/list_schedule.h"

namespace emplace {
namespace {

class MTopo final : public Placer {
 public:
  struct Options {};

  static OptionSchema<Options> schema() { return {}; }

  explicit MTopo(const Options&) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;
};

// Fills the devices in their order.
class Filler {
 public:
  explicit Filler(ListSchedule& schedule) : schedule_(schedule) {
    const Problem& problem = schedule.problem();
    const MemoryLedger& ledger = schedule.ledger();
    Bytes total = 0;
    Bytes largest = 0;
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      total += ledger.need(group);
      largest = std::max(largest, ledger.need(group));
    }
    cap_ = total / static_cast<Bytes>(schedule.devices().size()) + largest;
  }

  // False when the op has no candidate.
  bool place(OpId op) {
    const std::vector<DeviceId>& candidates = schedule_.candidates(op);
    if (candidates.empty()) return false;
    schedule_.commit(op, choose(op, candidates));
    return !schedule_.stuck();
  }

 private:
  // The device that is being filled, else the next one with room below the cap, which then is the
  // one being filled. An op that may not go on from here goes to its first device that has room.
  DeviceId choose(OpId op, const std::vector<DeviceId>& candidates) {
    const GroupId group = schedule_.problem().group_of(op);
    if (schedule_.device_of_group(group) != kNoDevice) return candidates.front();
    const MemoryLedger& ledger = schedule_.ledger();
    const Bytes need = schedule_.need_with_floating(op);
    const auto below_cap = [&](DeviceId device) { return need <= cap_ - ledger.used(device); };
    for (const DeviceId device : candidates) {
      if (device < filling_ || !below_cap(device)) continue;
      if (!room_before(device, need)) filling_ = device;
      return device;
    }
    const auto room = std::find_if(candidates.begin(), candidates.end(), below_cap);
    if (room != candidates.end()) return *room;
    return *std::max_element(candidates.begin(), candidates.end(), [&](DeviceId a, DeviceId b) {
      return ledger.left(a) < ledger.left(b);
    });
  }

  // Whether a device that is skipped still has room: then the group skips it because it may not use
  // it, and others will go on there.
  bool room_before(DeviceId device, Bytes need) const {
    const MemoryLedger& ledger = schedule_.ledger();
    for (const DeviceId other : schedule_.devices()) {
      if (other < filling_ || other >= device) continue;
      if (need <= std::min(cap_ - ledger.used(other), ledger.left(other))) return true;
    }
    return false;
  }

  ListSchedule& schedule_;
  Bytes cap_ = 0;
  DeviceId filling_ = 0;
};

PlaceResult MTopo::place(PlaceContext& context, const Budget& budget, Rng) {
  const Problem& problem = context.problem();
  return place_by_list(problem, context.evaluator(), budget, {}, false,
                       [&](ListSchedule& schedule) {
                         Filler filler(schedule);
                         for (OpId op = 0; op < problem.num_ops(); ++op) {
                           if (!schedule.floats(op) && !filler.place(op)) return false;
                         }
                         return true;
                       });
}

}  // namespace

EMPLACE_PLACER(m_topo, MTopo, .family = "heuristic",
               .summary = "Fills devices in topological order up to a balanced memory cap.",
               .reference = "Jeon et al., SoCC 2020 (Baechi)")

}  // namespace emplace
