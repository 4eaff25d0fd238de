// Says in as few names as are true what each device has. The modules form a tree by their names.
// From the leaves up, a node that is here as a whole (95 % of its work and of what it keeps) is
// said by its name; otherwise by its parts, if it matters on this device and its parts say more
// than a share of it would; otherwise as a share. Whole neighbours that count on, as layer.3 to
// layer.7, become a range. A description by thresholds, not a search.
//
// Each device visits only the nodes that its ops touch: O(ops * depth + touched nodes log touched
// nodes) in all.
#include "sim/device_contents.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace emplace {
namespace {

// A module or what is around modules: "encoder" of "encoder.layer.0". Parents come before children,
// siblings in the order of the forward pass.
struct TreeNode {
  std::string name;
  std::uint32_t parent = 0;   // the root is its own
  std::uint32_t ordinal = 0;  // among its siblings
  double weight = 0;
  Bytes resident = 0;
};

class ModuleTree {
 public:
  explicit ModuleTree(const Modules& modules) : nodes_(1), num_children_(1, 0) {
    for (const std::string& name : modules.names) node_of_module_.push_back(insert(name));
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const TreeNode& node(std::uint32_t id) const { return nodes_[id]; }
  std::uint32_t node_of_module(std::uint32_t module) const { return node_of_module_[module]; }

  // Calls `visit` with the node and all that is around it.
  template <class Visit>
  void for_each_around(std::uint32_t id, Visit visit) const {
    for (; id != 0; id = nodes_[id].parent) visit(id);
    visit(0);
  }
  void add(std::uint32_t id, double weight, Bytes resident) {
    for_each_around(id, [&](std::uint32_t around) {
      nodes_[around].weight += weight;
      nodes_[around].resident += resident;
    });
  }

 private:
  std::uint32_t insert(const std::string& name) {
    std::uint32_t at = 0;
    for (std::size_t end = name.find('.');; end = name.find('.', end + 1)) {
      at = child(at, name.substr(0, end));
      if (end == std::string::npos) return at;
    }
  }

  std::uint32_t child(std::uint32_t parent, const std::string& name) {
    const auto [entry, added] = by_name_.try_emplace(name, size());
    if (added) {
      nodes_.push_back({name, parent, num_children_[parent]++});
      num_children_.push_back(0);
    }
    return entry->second;
  }

  std::vector<TreeNode> nodes_;
  std::vector<std::uint32_t> num_children_;
  std::map<std::string, std::uint32_t> by_name_;
  std::vector<std::uint32_t> node_of_module_;
};

// "layer.11" as "layer." and 11.
std::optional<std::pair<std::string_view, std::uint64_t>> numbered(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::size_t digits = last == std::string_view::npos ? 0 : last + 1;
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(name.data() + digits, name.data() + name.size(), number);
  if (error != std::errc() || digits == name.size()) return std::nullopt;
  return std::pair(name.substr(0, digits), number);
}

bool counts_on(std::string_view name, std::string_view next) {
  const auto a = numbered(name);
  const auto b = numbered(next);
  return a && b && a->first == b->first && a->second + 1 == b->second;
}

// What a device has of one node, and how to say it.
struct Part {
  std::vector<HeldModules> said;
  double weight = 0;        // on this device
  double weight_whole = 0;  // of it, in modules that are here as a whole
};

class Describer {
 public:
  explicit Describer(const ModuleTree& tree)
      : tree_(tree),
        weight_here_(tree.size(), 0),
        resident_here_(tree.size(), 0),
        part_of_(tree.size(), kNone) {}

  void add(std::uint32_t node, double weight, Bytes resident) {
    tree_.for_each_around(node, [&](std::uint32_t around) {
      if (part_of_[around] == kNone) {
        part_of_[around] = 0;
        touched_.push_back(around);
      }
      weight_here_[around] += weight;
      resident_here_[around] += resident;
    });
  }

  // All that was added since the last call.
  std::vector<HeldModules> describe() {
    std::sort(touched_.begin(), touched_.end());
    parts_.assign(touched_.size(), {});
    children_.assign(touched_.size(), {});
    for (std::uint32_t i = 0; i < touched_.size(); ++i) {
      part_of_[touched_[i]] = i;
      if (touched_[i] != 0) children_[part_of_[tree_.node(touched_[i]).parent]].push_back(i);
    }
    for (std::uint32_t i = static_cast<std::uint32_t>(touched_.size()); i-- > 0;) describe_part(i);
    std::vector<HeldModules> result;
    if (!parts_.empty()) result = std::move(parts_[0].said);
    const double all = touched_.empty() ? 1 : weight_here_[0];
    for (HeldModules& modules : result) modules.work /= all;
    for (const std::uint32_t node : touched_) {
      weight_here_[node] = 0;
      resident_here_[node] = 0;
      part_of_[node] = kNone;
    }
    touched_.clear();
    return result;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr double kMatters = 0.25;
  static constexpr std::size_t kFew = 3;

  void describe_part(std::uint32_t index) {
    const TreeNode& node = tree_.node(touched_[index]);
    Part& part = parts_[index];
    part.weight = weight_here_[touched_[index]];
    const double share = part.weight / node.weight;
    const bool root = touched_[index] == 0;
    const bool resident_too = static_cast<double>(resident_here_[touched_[index]]) >=
                              HeldModules::kWhole * static_cast<double>(node.resident);
    if (!root && share >= HeldModules::kWhole && resident_too) {
      part.weight_whole = part.weight;
      part.said = {{node.name, node.name, 1, share, part.weight}};
      return;
    }
    for (const std::uint32_t child : children_[index]) {
      part.weight_whole += parts_[child].weight_whole;
    }
    part.said = list_children(children_[index]);
    const bool says_more = part.weight >= kMatters * weight_here_[0] && !part.said.empty() &&
                           (2 * part.weight_whole >= part.weight || part.said.size() <= kFew);
    if (!root && !says_more) part.said = {{node.name, node.name, 1, share, part.weight}};
    for (const std::uint32_t child : children_[index]) parts_[child].said.clear();
  }

  bool is_whole(std::uint32_t child) const {
    const std::vector<HeldModules>& said = parts_[child].said;
    return said.size() == 1 && said[0].whole() && said[0].first == name_of(child);
  }
  const std::string& name_of(std::uint32_t part) const { return tree_.node(touched_[part]).name; }

  // Runs of neighbours that are all here become ranges: numbered ones always, others where they
  // are many.
  std::vector<HeldModules> list_children(const std::vector<std::uint32_t>& children) const {
    std::vector<HeldModules> result;
    for (std::size_t i = 0; i < children.size();) {
      if (!is_whole(children[i])) {
        const auto& said = parts_[children[i]].said;
        result.insert(result.end(), said.begin(), said.end());
        ++i;
        continue;
      }
      std::size_t end = i + 1;
      while (end < children.size() && is_whole(children[end]) &&
             tree_.node(touched_[children[end]]).ordinal ==
                 tree_.node(touched_[children[end - 1]]).ordinal + 1) {
        ++end;
      }
      append_run(std::span(children).subspan(i, end - i), result);
      i = end;
    }
    return result;
  }

  void append_run(std::span<const std::uint32_t> run, std::vector<HeldModules>& result) const {
    constexpr std::size_t kMany = 5;
    std::vector<HeldModules> ranges;
    for (const std::uint32_t child : run) {
      HeldModules one = parts_[child].said[0];
      if (!ranges.empty() && counts_on(ranges.back().last, one.first)) {
        extend(ranges.back(), one);
      } else {
        ranges.push_back(std::move(one));
      }
    }
    if (ranges.size() > kMany) {
      for (std::size_t i = 1; i < ranges.size(); ++i) extend(ranges[0], ranges[i]);
      ranges.resize(1);
    }
    result.insert(result.end(), ranges.begin(), ranges.end());
  }

  static void extend(HeldModules& range, const HeldModules& next) {
    range.last = next.last;
    range.count += next.count;
    range.work += next.work;
    range.share = std::min(range.share, next.share);
  }

  const ModuleTree& tree_;
  std::vector<double> weight_here_;   // by node
  std::vector<Bytes> resident_here_;  // by node
  std::vector<std::uint32_t> part_of_;
  std::vector<std::uint32_t> touched_;
  std::vector<Part> parts_;  // by position in touched_
  std::vector<std::vector<std::uint32_t>> children_;
};

}  // namespace

std::vector<DeviceContents> device_contents(const Problem& problem, const Placement& placement,
                                            const Modules& modules) {
  // Ops of no length count a little, so that modules of nothing else are not lost.
  const auto weight = [&](OpId op) { return static_cast<double>(problem.mean_duration(op)) + 1; };
  ModuleTree tree(modules);
  std::vector<std::vector<OpId>> ops(problem.num_devices());
  double total = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    ops[placement[op]].push_back(op);
    tree.add(tree.node_of_module(modules.of_op[op]), weight(op), problem.resident_bytes(op));
    total += static_cast<double>(problem.mean_duration(op));
  }
  std::vector<DeviceContents> contents(problem.num_devices());
  Describer describer(tree);
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    DeviceContents& own = contents[device];
    for (const OpId op : ops[device]) {
      describer.add(tree.node_of_module(modules.of_op[op]), weight(op), problem.resident_bytes(op));
      own.resident += problem.resident_bytes(op);
      own.work += static_cast<double>(problem.mean_duration(op));
    }
    own.work = total > 0 ? own.work / total : 0;
    own.modules = describer.describe();
  }
  return contents;
}

}  // namespace emplace
