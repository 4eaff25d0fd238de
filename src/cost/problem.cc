// Compiles a graph on a cluster: groups and their devices, durations, means, resident bytes,
// horizon.
//
// Durations are kept in columns. Devices share one where kind and slowdown are equal and no source
// of costs tells them apart, so many like devices cost no more than one. A time is an exact decimal
// of microseconds until it is multiplied by the slowdown and rounded, half up, to nanoseconds, so
// the same figures give the same problem everywhere. Everything that could overflow later is
// refused here: tensors have less than 2^50 bytes in all, and the horizon, the sum of all that can
// happen one after another, is below 2^62, so simulators add without checks. O(columns * ops +
// devices^2 + edges).
#include "cost/problem.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "base/union_find.h"
#include "base/wide.h"

#include "cost/fusion.h"

namespace emplace {

bool Problem::allowed(GroupId group, DeviceId device) const {
  const auto devices = allowed_devices(group);
  return std::binary_search(devices.begin(), devices.end(), device);
}

Nanoseconds Problem::transfer_time(TensorId tensor, DeviceId from, DeviceId to) const {
  if (from == to) return 0;
  const Link* link = cluster_->link(from, to);
  return link == nullptr ? kNoLink : emplace::transfer_time(*link, graph_->bytes(tensor));
}

Nanoseconds Problem::mean_transfer_time(TensorId tensor) const {
  const double bytes = static_cast<double>(graph_->bytes(tensor));
  return static_cast<Nanoseconds>(mean_latency_ns_ + mean_ns_per_byte_ * bytes);
}

CostOrigin Problem::cost_origin(std::string_view source) const {
  for (const CostOrigin& origin : origins_) {
    if (origin.source == source) return origin;
  }
  return {.source = std::string(source)};
}

class ProblemCompiler {
 public:
  ProblemCompiler(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
                  const CompileOptions& options)
      : graph_(*graph),
        cluster_(*cluster),
        own_sources_(!options.sources.empty()),
        sources_(own_sources_ ? options.sources : cost_sources(options.cost)),
        fuse_(options.fuse),
        rules_(graph_, cluster_, options.rules),
        work_(graph_),
        problem_(new Problem) {
    problem_->graph_ = std::move(graph);
    problem_->cluster_ = std::move(cluster);
    problem_->options_ = options;
    for (const auto& source : sources_) {
      EMPLACE_CHECK(source != nullptr);
      problem_->origins_.push_back({.source = std::string(source->name())});
    }
    time_by_source_.assign(sources_.size(), 0);
  }

  std::shared_ptr<const Problem> compile() {
    check_sizes();
    problem_->nodes_ = find_nodes(graph_);
    problem_->colocation_ = find_colocation(graph_);
    problem_->overwritten_ = find_overwritten(graph_, problem_->options_.in_place);
    if (fuse_) fuse_chains();
    find_devices();
    find_durations();
    share_out_time();
    summarize_durations();
    summarize_links();
    sum_resident();
    find_horizon();
    return std::move(problem_);
  }

 private:
  using DeviceSet = std::vector<DeviceId>;

  // Sums over devices and over time must not overflow, whatever is placed where.
  void check_sizes() const {
    constexpr Bytes kLargest = Bytes{1} << 50;
    Wide total = 0;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      total +=
          static_cast<Wide>(graph_.persistent_bytes(op)) + static_cast<Wide>(graph_.temp_bytes(op));
      for (const TensorId tensor : graph_.outputs(op)) {
        total += static_cast<Wide>(std::max(graph_.bytes(tensor), graph_.memory_bytes(tensor)));
      }
      if (total > static_cast<Wide>(kLargest)) {
        fail_input("op '{}': with it the graph has more than {} of tensors, too much to count",
                   graph_.op_name(op), format_bytes(kLargest));
      }
    }
  }

  // One kernel runs on one device.
  void fuse_chains() {
    fusion_.emplace(graph_, work_);
    UnionFind groups(problem_->num_groups());
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      groups.unite(problem_->group_of(op), problem_->group_of(fusion_->last_of(op)));
    }
    std::vector<std::uint32_t> labels(graph_.num_ops());
    for (OpId op = 0; op < graph_.num_ops(); ++op) labels[op] = groups.find(problem_->group_of(op));
    problem_->colocation_ = number_groups(labels);
  }

  bool names_device(StringId name, DeviceId device) const {
    const std::string_view text = graph_.strings().get(name);
    return text == cluster_.device(device).name || text == cluster_.device(device).kind;
  }

  // Divided graphs name a device for each of their many ops.
  const DeviceSet& op_devices(OpId op) {
    const auto names = graph_.allowed_devices(op);
    const auto [at, added] = named_devices_.try_emplace({names.begin(), names.end()});
    if (!added) return at->second;
    DeviceSet& devices = at->second;
    for (DeviceId device = 0; device < cluster_.num_devices(); ++device) {
      const bool named = std::any_of(names.begin(), names.end(),
                                     [&](StringId name) { return names_device(name, device); });
      if (names.empty() || named) devices.push_back(device);
    }
    if (devices.empty()) {
      std::vector<std::string_view> texts;
      for (const StringId name : names) texts.push_back(graph_.strings().get(name));
      fail_input("op '{}': devices: none of {} is a device, or a device's kind, of the cluster",
                 graph_.op_name(op), fmt::join(texts, ", "));
    }
    return devices;
  }

  void find_devices() {
    std::map<DeviceSet, std::uint32_t> numbers;
    const auto number_of = [&](const DeviceSet& set) {
      const auto [entry, added] =
          numbers.try_emplace(set, static_cast<std::uint32_t>(problem_->device_sets_.size()));
      if (added) problem_->device_sets_.push_back(set);
      return entry->second;
    };
    DeviceSet all(cluster_.num_devices());
    for (DeviceId device = 0; device < cluster_.num_devices(); ++device) all[device] = device;
    for (GroupId group = 0; group < problem_->num_groups(); ++group) {
      DeviceSet common = all;
      for (const OpId op : problem_->group_ops(group)) {
        if (!graph_.allowed_devices(op).empty()) narrow(common, op_devices(op), op);
        if (!rules_.empty()) narrow(common, rules_.devices_of(op), op);
      }
      problem_->device_set_of_.push_back(number_of(common));
    }
  }

  void narrow(DeviceSet& common, const DeviceSet& own, OpId op) const {
    DeviceSet both;
    std::set_intersection(common.begin(), common.end(), own.begin(), own.end(),
                          std::back_inserter(both));
    if (both.empty()) {
      const OpId first = problem_->group_ops(problem_->group_of(op))[0];
      const std::string rules = rules_.describe(op) + (op == first ? "" : rules_.describe(first));
      fail_input(
          "op '{}': devices: must share a device with op '{}', but no device is allowed to "
          "both{}",
          graph_.op_name(op), graph_.op_name(first), rules);
    }
    common = std::move(both);
  }

  // Devices of one kind and slowdown take equally long, unless a source tells one apart.
  void find_durations() {
    std::map<std::string, std::uint32_t> numbers;
    std::vector<DeviceSet> columns;
    for (DeviceId id = 0; id < cluster_.num_devices(); ++id) {
      const Device& device = cluster_.device(id);
      const bool apart = std::any_of(sources_.begin(), sources_.end(), [&](const auto& source) {
        return source->tells_apart(graph_, device);
      });
      const std::string key = fmt::format("{}|{}|{}", device.kind, device.slowdown.to_string(),
                                          apart ? device.name : "");
      const auto [entry, added] =
          numbers.try_emplace(key, static_cast<std::uint32_t>(columns.size()));
      problem_->column_of_.push_back(entry->second);
      if (added) columns.emplace_back();
      columns[entry->second].push_back(id);
    }
    problem_->durations_.reserve(columns.size() * graph_.num_ops());
    for (std::uint32_t column = 0; column < columns.size(); ++column) {
      add_column(columns[column], column);
    }
  }

  // Only a device that the op may use needs a time.
  void add_column(const DeviceSet& devices, std::uint32_t column) {
    std::vector<OpId> unknown;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      Nanoseconds duration = 0;
      if (!graph_.is_source(op) && !graph_.is_view(op)) {
        const auto choice = problem_->allowed_devices(problem_->group_of(op));
        const auto usable = std::find_if(choice.begin(), choice.end(), [&](DeviceId id) {
          return problem_->column_of_[id] == column;
        });
        const bool allowed = usable != choice.end();
        if (const auto found = find_duration(op, allowed ? *usable : devices[0], allowed)) {
          duration = *found;
        } else if (allowed) {
          unknown.push_back(op);
        }
      }
      problem_->durations_.push_back(duration);
    }
    if (!unknown.empty()) report_unknown(unknown, cluster_.device(devices[0]));
    if (fusion_) {
      const std::span<Nanoseconds> all(problem_->durations_);
      fusion_->apply(cluster_.kind_of(devices[0]), all.last(graph_.num_ops()));
    }
  }

  // Of the first source that knows it.
  std::optional<Nanoseconds> find_duration(OpId op, DeviceId id, bool allowed) {
    const Device& device = cluster_.device(id);
    const CostSource::Query query{graph_, op, device, cluster_.kind_of(id), allowed, work_};
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const std::optional<Decimal> time = sources_[i]->time_us(query);
      if (!time) continue;
      if (time->negative()) {
        fail_input("op '{}': its {} time on '{}' is negative", graph_.op_name(op),
                   sources_[i]->name(), device.name);
      }
      const auto rounded = round_half_up(*time, device.slowdown, 1000);
      if (!rounded) {
        fail_input("op '{}': lasts longer than can be counted on '{}'", graph_.op_name(op),
                   device.name);
      }
      problem_->origins_[i].ops += 1;
      time_by_source_[i] += static_cast<double>(*rounded);
      return *rounded;
    }
    return std::nullopt;
  }

  // Where no op takes any time, it is all the first source's.
  void share_out_time() {
    double total = 0;
    for (const double time : time_by_source_) total += time;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      problem_->origins_[i].share = total > 0 ? time_by_source_[i] / total : (i == 0 ? 1 : 0);
    }
  }

  [[noreturn]] void report_unknown(const std::vector<OpId>& ops, const Device& device) const {
    constexpr std::size_t kShown = 5;
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < std::min(kShown, ops.size()); ++i)
      names.push_back(graph_.op_name(ops[i]));
    std::vector<std::string_view> asked;
    for (const auto& source : sources_) asked.push_back(source->name());
    fail_input(
        "{} ops have no {} time for '{}' (kind '{}'): {}{}; expected {}", ops.size(),
        fmt::join(asked, " or "), device.name, device.kind, fmt::join(names, ", "),
        ops.size() > kShown ? ", ..." : "",
        own_sources_ ? "a source that knows them" : "time_us, or a cost mode other than measured");
  }

  void summarize_durations() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const auto devices = problem_->allowed_devices(problem_->group_of(op));
      Nanoseconds fastest = std::numeric_limits<Nanoseconds>::max();
      double sum = 0;
      for (const DeviceId device : devices) {
        const Nanoseconds time = problem_->duration(op, device);
        fastest = std::min(fastest, time);
        sum += static_cast<double>(time);
      }
      problem_->fastest_.push_back(fastest);
      problem_->mean_.push_back(
          static_cast<Nanoseconds>(sum / static_cast<double>(devices.size())));
    }
  }

  void summarize_links() {
    int pairs = 0;
    for (DeviceId from = 0; from < cluster_.num_devices(); ++from) {
      for (DeviceId to = 0; to < cluster_.num_devices(); ++to) {
        const Link* link = cluster_.link(from, to);
        if (link == nullptr) continue;
        ++pairs;
        problem_->mean_latency_ns_ += static_cast<double>(link->latency);
        problem_->mean_ns_per_byte_ += 1e9 / static_cast<double>(link->bandwidth);
      }
    }
    if (pairs == 0) return;
    problem_->mean_latency_ns_ /= pairs;
    problem_->mean_ns_per_byte_ /= pairs;
  }

  void sum_resident() {
    problem_->resident_.resize(graph_.num_ops());
    problem_->group_resident_.resize(problem_->num_groups());
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      Bytes bytes = graph_.persistent_bytes(op);
      const OpRole role = graph_.role(op);
      if ((role == OpRole::kParameter || role == OpRole::kBuffer) && !graph_.is_view(op)) {
        for (const TensorId tensor : graph_.outputs(op)) bytes += graph_.memory_bytes(tensor);
      }
      problem_->resident_[op] = bytes;
      problem_->group_resident_[problem_->group_of(op)] += bytes;
    }
  }

  // Nothing waits forever, so no step is longer than everything done one after another.
  void find_horizon() {
    Wide total = 0;
    Nanoseconds longest_gap = 0;
    for (DeviceId device = 0; device < cluster_.num_devices(); ++device) {
      longest_gap = std::max(longest_gap, cluster_.device(device).gap);
    }
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      Nanoseconds longest = 0;
      for (DeviceId device = 0; device < cluster_.num_devices(); ++device) {
        longest = std::max(longest, problem_->duration(op, device));
      }
      if (longest > 0) total += static_cast<Wide>(longest) + static_cast<Wide>(longest_gap);
    }
    total += transfer_horizon();
    if (total > static_cast<Wide>(std::numeric_limits<Nanoseconds>::max() / 2)) {
      fail_input("graph '{}': a step could last longer than can be counted", graph_.name());
    }
    problem_->horizon_ = static_cast<Nanoseconds>(total);
  }

  Wide transfer_horizon() const {
    std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
    Wide fixed = 0;
    for (DeviceId from = 0; from < cluster_.num_devices(); ++from) {
      for (DeviceId to = 0; to < cluster_.num_devices(); ++to) {
        const Link* link = cluster_.link(from, to);
        if (link == nullptr) continue;
        slowest = std::min(slowest, link->bandwidth);
        fixed = std::max(fixed, static_cast<Wide>(link->latency) + static_cast<Wide>(link->hold));
      }
    }
    const Link worst{.channel = 0, .bandwidth = slowest};
    Wide total = 0;
    for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
      const std::size_t copies =
          std::min<std::size_t>(graph_.consumers(tensor).size(), cluster_.num_devices() - 1U);
      if (copies == 0) continue;
      const Nanoseconds one = emplace::transfer_time(worst, graph_.bytes(tensor));
      total += (static_cast<Wide>(one) + fixed) * copies;
    }
    return total;
  }

  const Graph& graph_;
  const Cluster& cluster_;
  bool own_sources_;
  CostSources sources_;
  bool fuse_;
  RuledDevices rules_;
  WorkReader work_;
  std::optional<Fusion> fusion_;
  std::shared_ptr<Problem> problem_;
  std::map<std::vector<StringId>, DeviceSet> named_devices_;
  std::vector<double> time_by_source_;
};

std::shared_ptr<const Problem> compile(std::shared_ptr<const Graph> graph,
                                       std::shared_ptr<const Cluster> cluster,
                                       const CompileOptions& options) {
  EMPLACE_CHECK(graph != nullptr && cluster != nullptr);
  return ProblemCompiler(std::move(graph), std::move(cluster), options).compile();
}

std::shared_ptr<const Problem> compile(std::shared_ptr<const Graph> graph,
                                       std::shared_ptr<const Cluster> cluster, CostMode mode) {
  return compile(std::move(graph), std::move(cluster), CompileOptions{.cost = mode});
}

}  // namespace emplace
