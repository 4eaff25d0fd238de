// Makes the relaxed problem. Invariant: whatever schedule the problem allows, the same starts and
// ends are one of the dag, with no time, transfer or gap longer than in the problem. So a bound for
// the dag is one for the problem; it is not tight, as channels are never busy here and links are as
// good as the best between two classes.
//
// Nodes are ops that take time on some device, and those that join several. An op that takes none
// anywhere is passed over: with nothing before it, it is over at once; with one node before it in
// its own group, it ends with that node; and where nothing after it takes time, it adds nothing to
// the step. Of several tensors from one node the largest counts, since all of them must arrive.
// Devices are put into classes whose members run every op equally fast; with more than four classes
// all become one, as fast for each op as the fastest. O(ops * devices + edges log edges). Ours.
#include "bound/dag.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace emplace {
namespace {

// More classes than this are lumped together into one, as fast as the fastest of them for each op.
constexpr std::size_t kMostDeviceClasses = 4;

bool alike(const Problem& problem, DeviceId a, DeviceId b) {
  const Device& one = problem.cluster().device(a);
  const Device& other = problem.cluster().device(b);
  if (one.gap != other.gap || one.memory != other.memory) return false;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    if (problem.duration(op, a) != problem.duration(op, b)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::vector<DeviceId>> classes_of_devices(const Problem& problem, std::size_t most) {
  std::vector<std::vector<DeviceId>> classes;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    const auto same = std::find_if(classes.begin(), classes.end(), [&](const auto& members) {
      return alike(problem, members.front(), device);
    });
    if (same != classes.end()) {
      same->push_back(device);
    } else if (classes.size() < most) {
      classes.push_back({device});
    } else {
      return {};
    }
  }
  return classes;
}

std::optional<Connection> best_connection(const Cluster& cluster, std::span<const DeviceId> from,
                                          std::span<const DeviceId> to) {
  std::optional<Connection> best;
  for (const DeviceId a : from) {
    for (const DeviceId b : to) {
      const Link* link = cluster.link(a, b);
      if (link == nullptr) continue;
      if (!best) best = Connection{link->latency, link->bandwidth};
      best->latency = std::min(best->latency, link->latency);
      best->bandwidth = std::max(best->bandwidth, link->bandwidth);
    }
  }
  return best;
}

class BoundDagMaker {
 public:
  BoundDagMaker(const Problem& problem, const BoundDag::Possible& possible)
      : problem_(problem), graph_(problem.graph()), possible_(possible) {}

  BoundDag make() {
    find_classes();
    find_links();
    find_places();
    dag_.label_.resize(problem_.num_groups());
    std::iota(dag_.label_.begin(), dag_.label_.end(), GroupId{0});
    origin_.assign(graph_.num_ops(), Origin{});
    const std::vector<bool> ends = find_ends();
    for (OpId op = 0; op < graph_.num_ops(); ++op) add(op, ends[op]);
    return std::move(dag_);
  }

 private:
  // Where an op's outputs come from: nowhere that matters, or the end of a node.
  struct Origin {
    bool any = false;
    std::uint32_t node = 0;
  };

  void find_classes() {
    classes_ = classes_of_devices(problem_, kMostDeviceClasses);
    lumped_ = classes_.empty();
    dag_.lumped_ = lumped_;
    if (lumped_) {
      classes_.emplace_back(problem_.num_devices());
      std::iota(classes_[0].begin(), classes_[0].end(), DeviceId{0});
    }
    for (const auto& members : classes_) {
      dag_.class_size_.push_back(members.size());
      Nanoseconds gap = kInfinite;
      Bytes memory = 0;
      for (const DeviceId device : members) {
        gap = std::min(gap, problem_.cluster().device(device).gap);
        memory = std::max(memory, problem_.cluster().device(device).memory);
      }
      dag_.memory_.push_back(memory);
      dag_.gap_.push_back(gap);
    }
  }

  void find_links() {
    for (std::size_t from = 0; from < classes_.size(); ++from) {
      for (std::size_t to = 0; to < classes_.size(); ++to) {
        const auto found = best_connection(problem_.cluster(), classes_[from], classes_[to]);
        std::uint32_t index = BoundDag::kNoLinkKind;
        if (found) {
          const auto known = std::find(links_.begin(), links_.end(), *found);
          index = static_cast<std::uint32_t>(known - links_.begin());
          if (known == links_.end()) links_.push_back(*found);
        }
        dag_.link_.push_back(index);
      }
    }
    dag_.num_links_ = links_.size();
  }

  // Where each group may run.
  void find_places() {
    class_of_.resize(problem_.num_devices());
    for (std::size_t device_class = 0; device_class < classes_.size(); ++device_class) {
      for (const DeviceId device : classes_[device_class]) class_of_[device] = device_class;
    }
    place_.assign(problem_.num_groups() * classes_.size(), kNoDevice);
    for (GroupId group = 0; group < problem_.num_groups(); ++group) {
      for (const DeviceId device : problem_.allowed_devices(group)) {
        DeviceId& place = place_[group * classes_.size() + class_of_[device]];
        if (place == kNoDevice && possible_(group, device)) place = device;
      }
    }
  }

  Nanoseconds class_duration(OpId op, std::size_t device_class) const {
    const GroupId group = problem_.group_of(op);
    const DeviceId place = place_[group * classes_.size() + device_class];
    if (place == kNoDevice) return kInfinite;
    if (!lumped_) return problem_.duration(op, place);
    Nanoseconds best = kInfinite;
    for (const DeviceId device : problem_.allowed_devices(group)) {
      if (possible_(group, device)) best = std::min(best, problem_.duration(op, device));
    }
    return best;
  }

  // Takes no time on any device, and may run on all.
  bool free(OpId op) const {
    for (std::size_t device_class = 0; device_class < classes_.size(); ++device_class) {
      if (class_duration(op, device_class) != 0) return false;
    }
    return true;
  }

  // Ops after which nothing takes time, and which take none: they end with what they wait for.
  std::vector<bool> find_ends() const {
    std::vector<bool> ends(graph_.num_ops());
    std::vector<bool> awaited(graph_.num_ops());
    for (OpId op = graph_.num_ops(); op-- > 0;) {
      ends[op] = !awaited[op] && free(op);
      if (ends[op]) continue;
      for (const TensorId tensor : graph_.inputs(op)) awaited[graph_.producer(tensor)] = true;
      for (const OpId before : graph_.after(op)) awaited[before] = true;
    }
    return ends;
  }

  // The op's arcs: one from each node, with the largest of the tensors that come from there.
  void collect_arcs(OpId op) {
    arcs_.clear();
    for (const TensorId tensor : graph_.inputs(op)) {
      const Origin& origin = origin_[graph_.producer(tensor)];
      if (origin.any) arcs_.emplace_back(origin.node, graph_.bytes(tensor));
    }
    for (const OpId before : graph_.after(op)) {
      if (origin_[before].any) arcs_.emplace_back(origin_[before].node, kControlOnly);
    }
    std::sort(arcs_.begin(), arcs_.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    const auto repeats = std::unique(arcs_.begin(), arcs_.end(), [](const auto& a, const auto& b) {
      return a.first == b.first;
    });
    arcs_.erase(repeats, arcs_.end());
  }

  void add(OpId op, bool end) {
    collect_arcs(op);
    const bool takes_none = free(op);
    if (takes_none && (end || arcs_.empty())) return;
    // A view, and the like: it ends when what it waits for ends, on that op's device.
    if (takes_none && arcs_.size() == 1 && dag_.group_[arcs_[0].first] == problem_.group_of(op)) {
      origin_[op] = {true, arcs_[0].first};
      return;
    }
    origin_[op] = {true, dag_.size()};
    before_.clear();
    for (const auto& [from, bytes] : arcs_) before_.push_back({from, transfer_of(bytes)});
    dag_.op_.push_back(op);
    dag_.group_.push_back(problem_.group_of(op));
    dag_.before_.push_back(before_);
    for (std::size_t device_class = 0; device_class < classes_.size(); ++device_class) {
      dag_.duration_.push_back(class_duration(op, device_class));
    }
  }

  std::uint32_t transfer_of(Bytes bytes) {
    if (bytes == kControlOnly || links_.empty()) {
      return bytes == kControlOnly ? BoundDag::kControl : 0;
    }
    const auto index = static_cast<std::uint32_t>(dag_.transfer_.size() / links_.size());
    for (const Connection& link : links_) {
      dag_.transfer_.push_back(
          transfer_time({.bandwidth = link.bandwidth, .latency = link.latency}, bytes));
    }
    return index;
  }

  static constexpr Bytes kControlOnly = -1;

  const Problem& problem_;
  const Graph& graph_;
  const BoundDag::Possible& possible_;
  BoundDag dag_;
  std::vector<std::vector<DeviceId>> classes_;
  bool lumped_ = false;
  std::vector<std::size_t> class_of_;  // by device
  std::vector<DeviceId> place_;        // [group][class]: a device of the class, where there is one
  std::vector<Connection> links_;
  std::vector<Origin> origin_;  // by op
  std::vector<std::pair<std::uint32_t, Bytes>> arcs_;
  std::vector<BoundArc> before_;
};

BoundDag::BoundDag(const Problem& problem, const Possible& possible)
    : BoundDag(BoundDagMaker(problem, possible).make()) {}

BoundDag BoundDag::reversed() const {
  BoundDag result;
  result.op_.assign(op_.rbegin(), op_.rend());
  result.group_.assign(group_.rbegin(), group_.rend());
  result.label_ = label_;
  std::vector<std::pair<std::uint32_t, BoundArc>> arcs;
  arcs.reserve(before_.total());
  for (std::uint32_t node = size(); node-- > 0;) {
    for (const BoundArc& arc : before(node)) {
      arcs.emplace_back(mirrored(arc.from), BoundArc{mirrored(node), arc.transfer});
    }
  }
  result.before_ = Csr<BoundArc>::from_pairs(size(), arcs);
  result.class_size_ = class_size_;
  result.gap_ = gap_;
  result.memory_ = memory_;
  const std::size_t classes = num_classes();
  for (std::uint32_t node = size(); node-- > 0;) {
    for (std::size_t device_class = 0; device_class < classes; ++device_class) {
      result.duration_.push_back(duration(node, device_class));
    }
  }
  for (std::size_t from = 0; from < classes; ++from) {
    for (std::size_t to = 0; to < classes; ++to) {
      result.link_.push_back(link_[to * classes + from]);
    }
  }
  result.num_links_ = num_links_;
  result.transfer_ = transfer_;
  return result;
}

Nanoseconds BoundDag::fastest(std::uint32_t node) const {
  Nanoseconds best = kInfinite;
  for (std::size_t device_class = 0; device_class < num_classes(); ++device_class) {
    best = std::min(best, duration(node, device_class));
  }
  return best;
}

void BoundDag::merge(const std::function<GroupId(GroupId)>& label) {
  for (GroupId& group : group_) group = label(group);
  for (GroupId& group : label_) group = label(group);
}

void BoundDag::forbid(std::uint32_t node, std::size_t device_class) {
  duration_[node * num_classes() + device_class] = kInfinite;
}

}  // namespace emplace
