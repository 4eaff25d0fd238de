// Devices fall into classes of which any member may stand for any other: same speed, memory, gap
// and rules, and swapping the two maps every link and channel onto its like. A set is then how many
// it takes of each class, so that 4 of 64 equal devices are one set, not 635,376. All such counts
// are enumerated while they are few; `complete` says that they were, so that bounds of the sets
// bound everything. Otherwise a heuristic takes those that could be fastest, the one with most
// memory and the one with the fastest links. Comparing two devices takes time quadratic in their
// number.
#include "run/device_subsets.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "base/check.h"
#include "base/error.h"
#include "base/wide.h"

namespace emplace {
namespace {

bool same_link(const Link* a, const Link* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->bandwidth == b->bandwidth && a->latency == b->latency && a->hold == b->hold &&
         a->multicast == b->multicast && a->unlimited == b->unlimited;
}

// Whether the devices of two lists, taken one by one, differ in nothing but their names.
class Likeness {
 public:
  explicit Likeness(const Problem& problem) : problem_(problem), cluster_(problem.cluster()) {
    std::set<const DeviceId*> seen;  // groups of one set share its storage
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      const auto allowed = problem.allowed_devices(group);
      if (seen.insert(allowed.data()).second) allowed_sets_.push_back({allowed, group});
    }
  }

  bool alike(const DeviceSet& a, const DeviceSet& b) const {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i] && !alike(a[i], b[i])) return false;
    }
    constexpr ChannelId kUnset = kNoChannel;
    std::vector<ChannelId> forth(cluster_.num_channels(), kUnset);
    std::vector<ChannelId> back(cluster_.num_channels(), kUnset);
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < a.size(); ++j) {
        const Link* link_a = cluster_.link(a[i], a[j]);
        const Link* link_b = cluster_.link(b[i], b[j]);
        if (!same_link(link_a, link_b)) return false;
        if (link_a == nullptr) continue;
        ChannelId& to = forth[link_a->channel];
        ChannelId& from = back[link_b->channel];
        if (to == kUnset) to = link_b->channel;
        if (from == kUnset) from = link_a->channel;
        if (to != link_b->channel || from != link_a->channel) return false;
      }
    }
    return true;
  }

  // Whether swapping the two changes nothing.
  bool interchangeable(DeviceId a, DeviceId b) const {
    if (!alike(a, b)) return false;
    DeviceSet all(cluster_.num_devices());
    std::iota(all.begin(), all.end(), DeviceId{0});
    DeviceSet swapped = all;
    std::swap(swapped[a], swapped[b]);
    return alike(all, swapped);
  }

  struct AllowedSet {
    std::span<const DeviceId> devices;
    GroupId group;  // one that has it
  };
  const std::vector<AllowedSet>& allowed_sets() const { return allowed_sets_; }

 private:
  bool alike(DeviceId a, DeviceId b) const {
    const Device& x = cluster_.device(a);
    const Device& y = cluster_.device(b);
    const bool same = x.kind == y.kind && x.memory == y.memory && x.gap == y.gap &&
                      x.slowdown == y.slowdown && x.free_communication == y.free_communication;
    // Ops may have times for devices by name.
    const StringPool& strings = problem_.graph().strings();
    return same && !strings.find(x.name) && !strings.find(y.name) &&
           std::all_of(allowed_sets_.begin(), allowed_sets_.end(), [&](const AllowedSet& set) {
             return problem_.allowed(set.group, a) == problem_.allowed(set.group, b);
           });
  }

  const Problem& problem_;
  const Cluster& cluster_;
  std::vector<AllowedSet> allowed_sets_;
};

// Devices of which any may stand for any other.
struct DeviceClass {
  DeviceSet members;
  double speed = 0;  // all ops per nanosecond
  Bytes memory = 0;

  bool contiguous() const { return members.back() - members.front() + 1U == members.size(); }
};

std::vector<DeviceClass> classify(const Problem& problem, const Likeness& likeness) {
  std::vector<DeviceClass> classes;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    const auto own = std::find_if(classes.begin(), classes.end(), [&](const DeviceClass& known) {
      return likeness.interchangeable(known.members[0], device);
    });
    if (own != classes.end()) {
      own->members.push_back(device);
      continue;
    }
    double total = 1;
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      total += static_cast<double>(problem.duration(op, device));
    }
    classes.push_back({{device}, 1 / total, problem.cluster().device(device).memory});
  }
  return classes;
}

void sort_classes(std::vector<DeviceClass>& classes, bool memory_first) {
  std::stable_sort(classes.begin(), classes.end(), [&](const DeviceClass& a, const DeviceClass& b) {
    const auto key = [&](const DeviceClass& c) {
      const double memory = static_cast<double>(c.memory);
      return memory_first ? std::tuple(-memory, -c.speed) : std::tuple(-c.speed, -memory);
    };
    return key(a) < key(b);
  });
}

// Every way to take `count` devices of the classes, many of the first ones before few; whether
// there were no more than `most`.
class Enumeration {
 public:
  Enumeration(const std::vector<DeviceClass>& classes, DeviceId count, std::size_t most)
      : classes_(classes), most_(most), after_(classes.size() + 1, 0) {
    for (std::size_t i = classes.size(); i-- > 0;) {
      after_[i] = after_[i + 1] + classes[i].members.size();
    }
    complete_ = take(0, count);
  }

  bool complete() const { return complete_; }
  const std::vector<DeviceSet>& sets() const { return sets_; }

 private:
  bool take(std::size_t index, std::size_t left) {
    if (left > after_[index]) return true;
    if (left == 0) {
      if (sets_.size() == most_) return false;
      sets_.push_back(chosen_);
      std::sort(sets_.back().begin(), sets_.back().end());
      return true;
    }
    const DeviceSet& members = classes_[index].members;
    const std::size_t size_before = chosen_.size();
    for (std::size_t n = std::min(left, members.size());; --n) {
      chosen_.resize(size_before);
      chosen_.insert(chosen_.end(), members.begin(),
                     members.begin() + static_cast<std::ptrdiff_t>(n));
      if (!take(index + 1, left - n)) return false;
      if (n == 0) break;
    }
    chosen_.resize(size_before);
    return true;
  }

  const std::vector<DeviceClass>& classes_;
  std::size_t most_;
  std::vector<std::size_t> after_;  // devices from the class on
  DeviceSet chosen_;
  std::vector<DeviceSet> sets_;
  bool complete_ = true;
};

struct Candidate {
  DeviceSet devices;
  double speed = 0;
  double bandwidth = 0;  // of all links within
  Wide memory = 0;
};

class Chooser {
 public:
  Chooser(const Problem& problem, DeviceId count, std::size_t most)
      : problem_(problem), count_(count), most_(most), likeness_(problem) {
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      resident_ += static_cast<Wide>(problem.resident_bytes(op));
    }
  }

  DeviceSubsets choose() {
    std::vector<DeviceClass> classes = classify(problem_, likeness_);
    // Numbers break ties, so what may stand for what also depends on their order.
    result_.complete = std::all_of(classes.begin(), classes.end(),
                                   [](const DeviceClass& c) { return c.contiguous(); });
    speed_.resize(problem_.num_devices());
    for (const DeviceClass& c : classes) {
      for (const DeviceId device : c.members) speed_[device] = c.speed;
    }
    constexpr std::size_t kWork = std::size_t{1} << 22;
    const std::size_t limit =
        std::clamp<std::size_t>(kWork / (std::size_t{count_} * count_), 16, 512);
    sort_classes(classes, false);
    const Enumeration fast(classes, count_, limit);
    for (const DeviceSet& devices : fast.sets()) consider(devices);
    if (!fast.complete()) {
      result_.complete = false;
      sort_classes(classes, true);
      const Enumeration large(classes, count_, limit);
      for (const DeviceSet& devices : large.sets()) consider(devices);
    }
    if (candidates_.empty()) fail_to_serve();
    select();
    return std::move(result_);
  }

 private:
  bool serves_all(const DeviceSet& devices) const {
    const auto& sets = likeness_.allowed_sets();
    return std::all_of(sets.begin(), sets.end(), [&](const auto& set) {
      return std::any_of(devices.begin(), devices.end(),
                         [&](DeviceId device) { return problem_.allowed(set.group, device); });
    });
  }

  bool linked(const DeviceSet& devices, DeviceId device) const {
    return devices.size() == 1 || std::any_of(devices.begin(), devices.end(), [&](DeviceId other) {
             return problem_.cluster().link(device, other) != nullptr ||
                    problem_.cluster().link(other, device) != nullptr;
           });
  }

  void consider(const DeviceSet& devices) {
    if (!serves_all(devices)) return;
    if (!std::all_of(devices.begin(), devices.end(),
                     [&](DeviceId device) { return linked(devices, device); })) {
      result_.complete = false;
      return;
    }
    Candidate candidate{.devices = devices};
    for (const DeviceId from : devices) {
      candidate.speed += speed_[from];
      candidate.memory += static_cast<Wide>(problem_.cluster().device(from).memory);
      for (const DeviceId to : devices) {
        const Link* link = problem_.cluster().link(from, to);
        if (link != nullptr) candidate.bandwidth += static_cast<double>(link->bandwidth);
      }
    }
    candidates_.push_back(std::move(candidate));
  }

  void select() {
    const auto too_small = [&](const Candidate& c) { return c.memory < resident_; };
    if (!std::all_of(candidates_.begin(), candidates_.end(), too_small)) {
      std::erase_if(candidates_, too_small);
    }
    std::stable_sort(
        candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
          return std::tuple(-a.speed, -a.bandwidth) < std::tuple(-b.speed, -b.bandwidth);
        });
    std::vector<const Candidate*> distinct;
    for (const Candidate& candidate : candidates_) {
      const bool known = std::any_of(distinct.begin(), distinct.end(), [&](const Candidate* other) {
        return other->speed == candidate.speed && other->memory == candidate.memory &&
               likeness_.alike(other->devices, candidate.devices);
      });
      if (!known) distinct.push_back(&candidate);
    }
    if (distinct.size() > most_) {
      result_.complete = false;
      keep_best(distinct);
    }
    for (const Candidate* candidate : distinct) result_.sets.push_back(candidate->devices);
  }

  void keep_best(std::vector<const Candidate*>& distinct) const {
    const auto most = [&](auto value) {
      return *std::max_element(
          distinct.begin(), distinct.end(),
          [&](const Candidate* a, const Candidate* b) { return value(*a) < value(*b); });
    };
    const Candidate* largest = most([](const Candidate& c) { return c.memory; });
    const Candidate* nearest = most([](const Candidate& c) { return c.bandwidth; });
    std::vector<const Candidate*> kept;
    for (const Candidate* candidate : distinct) {
      const bool room = kept.size() + 2 < most_ || candidate == largest || candidate == nearest;
      if (room && kept.size() < most_) kept.push_back(candidate);
    }
    distinct = std::move(kept);
  }

  [[noreturn]] void fail_to_serve() const {
    const Graph& graph = problem_.graph();
    const auto& sets = likeness_.allowed_sets();
    const auto narrowest = std::min_element(
        sets.begin(), sets.end(),
        [](const auto& a, const auto& b) { return a.devices.size() < b.devices.size(); });
    std::vector<std::string_view> names;
    for (const DeviceId device : narrowest->devices) {
      names.push_back(problem_.cluster().device(device).name);
    }
    fail_option(
        "no {} of the {} devices are linked and may run every op: op '{}' may use only {}, and "
        "others may not",
        count_, problem_.num_devices(), graph.op_name(problem_.group_ops(narrowest->group)[0]),
        fmt::join(names, ", "));
  }

  const Problem& problem_;
  DeviceId count_;
  std::size_t most_;
  Likeness likeness_;
  Wide resident_ = 0;
  std::vector<double> speed_;  // by device
  std::vector<Candidate> candidates_;
  DeviceSubsets result_;
};

}  // namespace

DeviceSubsets device_subsets(const Problem& problem, DeviceId count, std::size_t most) {
  EMPLACE_CHECK(count > 0 && most > 0);
  if (count >= problem.num_devices()) {
    DeviceSet all(problem.num_devices());
    std::iota(all.begin(), all.end(), DeviceId{0});
    return {{std::move(all)}, true};
  }
  return Chooser(problem, count, most).choose();
}

DeviceSet grown_to(const Problem& problem, DeviceSet devices, DeviceId count) {
  std::vector<DeviceClass> classes = classify(problem, Likeness(problem));
  sort_classes(classes, false);
  for (const DeviceClass& c : classes) {
    for (const DeviceId device : c.members) {
      if (devices.size() >= count) break;
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
        devices.push_back(device);
      }
    }
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

}  // namespace emplace
