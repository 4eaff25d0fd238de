#include "report/placement_tree.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "graph/graph_builder.h"
#include "graph/module_tree.h"
#include "graph/tensor_type.h"

#include "report/text_style.h"

namespace emplace {
namespace {

using TreeRow = PlacementTree::Row;

bool counts_up(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

std::size_t devices_used(const TreeRow& row) {
  return static_cast<std::size_t>(std::count_if(row.on_device.begin(), row.on_device.end(),
                                                [](std::int64_t ops) { return ops > 0; }));
}

std::size_t only_device(const TreeRow& row) {
  return static_cast<std::size_t>(
      std::find_if(row.on_device.begin(), row.on_device.end(), [](auto ops) { return ops > 0; }) -
      row.on_device.begin());
}

class TreeMaker {
 public:
  TreeMaker(const Graph& graph, const PlacedOps& placed, int depth)
      : tree_(graph, infer_modules(graph)), placed_(placed), depth_(depth), sums_(tree_.size()) {
    for (TreeRow& sum : sums_) sum.on_device.assign(placed.devices.size(), 0);
    for (std::uint32_t node = tree_.size(); node-- > 0;) {
      for (const OpId op : tree_.node(node).ops) count(graph, op, sums_[node]);
      if (node != ModuleTree::kRoot) add(sums_[node], sums_[tree_.node(node).parent]);
    }
    sums_[ModuleTree::kRoot].name = graph.name();
    show(graph, ModuleTree::kRoot, 0);
  }

  std::vector<TreeRow> rows() && { return std::move(rows_); }

 private:
  void count(const Graph& graph, OpId op, TreeRow& row) const {
    const OpRole role = graph.role(op);
    if (role == OpRole::kInput || role == OpRole::kConstant) return;
    ++row.ops;
    ++row.on_device[placed_.device[op]];
    if (role != OpRole::kParameter) return;
    for (const TensorId tensor : graph.outputs(op)) {
      row.weights = saturating_add(row.weights, graph.bytes(tensor));
    }
  }

  static void add(const TreeRow& part, TreeRow& whole) {
    whole.ops += part.ops;
    whole.weights = saturating_add(whole.weights, part.weights);
    for (std::size_t i = 0; i < part.on_device.size(); ++i) {
      whole.on_device[i] += part.on_device[i];
    }
  }

  void show(const Graph& graph, std::uint32_t node, int depth) {
    TreeRow row = sums_[node];
    row.depth = depth;
    if (node != ModuleTree::kRoot) row.name = tree_.node(node).name;
    rows_.push_back(row);
    if (devices_used(row) < 2 || depth >= depth_) return;
    TreeRow own;
    own.on_device.assign(placed_.devices.size(), 0);
    for (const OpId op : tree_.node(node).ops) count(graph, op, own);
    const auto& children = tree_.node(node).children;
    for (std::size_t i = 0; i < children.size();) {
      const std::size_t end = alike(children, i);
      if (end - i < 2) {
        if (sums_[children[i]].ops > 0) show(graph, children[i], depth + 1);
      } else {
        TreeRow merged = sums_[children[i]];
        for (std::size_t j = i + 1; j < end; ++j) add(sums_[children[j]], merged);
        merged.depth = depth + 1;
        merged.name = tree_.node(children[i]).name + "-" + tree_.node(children[end - 1]).name;
        rows_.push_back(std::move(merged));
      }
      i = end;
    }
    if (own.ops > 0 && !children.empty()) {
      own.depth = depth + 1;
      own.name = "(its own ops)";
      rows_.push_back(std::move(own));
    }
  }

  // Numbered neighbours that are whole on one device: the end of the run that begins here.
  std::size_t alike(const std::vector<std::uint32_t>& children, std::size_t begin) const {
    const auto fits = [&](std::size_t i) {
      return counts_up(tree_.node(children[i]).name) && devices_used(sums_[children[i]]) == 1 &&
             only_device(sums_[children[i]]) == only_device(sums_[children[begin]]);
    };
    std::size_t end = begin + 1;
    if (!fits(begin)) return end;
    while (end < children.size() && fits(end)) ++end;
    return end;
  }

  ModuleTree tree_;
  const PlacedOps& placed_;
  int depth_;
  std::vector<TreeRow> sums_;  // by module, with all that is inside it
  std::vector<TreeRow> rows_;
};

// Eight that are told apart on dark and on light.
std::string coloured(const std::string& text, std::size_t device, bool colours) {
  constexpr std::array<int, 6> kCodes{36, 33, 35, 32, 34, 31};
  if (!colours) return text;
  return fmt::format("\033[{}m{}\033[0m", kCodes[device % kCodes.size()], text);
}

// "gpu0", or "gpu0 60 %, gpu1 40 %", the largest first; cut to the width.
std::string where(const PlacementTree& tree, const TreeRow& row, std::size_t width, bool colours) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < row.on_device.size(); ++i) {
    if (row.on_device[i] > 0) used.push_back(i);
  }
  if (used.size() == 1) return coloured(tree.devices[used[0]], used[0], colours);
  std::stable_sort(used.begin(), used.end(), [&](std::size_t a, std::size_t b) {
    return row.on_device[a] > row.on_device[b];
  });
  std::string text;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const double share =
        100.0 * static_cast<double>(row.on_device[used[i]]) / static_cast<double>(row.ops);
    const std::string part = fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", tree.devices[used[i]],
                                         std::max(share, 1.0));
    if (i > 0 && columns + display_width(part) + 5 > width) return text + ", ...";
    columns += display_width(part);
    text += coloured(part, used[i], colours);
  }
  return text;
}

}  // namespace

PlacementTree placement_tree(const Graph& graph, const PlacedOps& placed, int depth) {
  return {.devices = placed.devices, .rows = TreeMaker(graph, placed, depth).rows()};
}

std::string to_text(const PlacementTree& tree, bool colours) {
  const bool weights = !tree.rows.empty() && tree.rows.front().weights > 0;
  std::size_t names = 6;
  for (const TreeRow& row : tree.rows) {
    // The whole has a long name, as a rule, and is in the title, too.
    const std::size_t length = display_width(row.name) + 2 * static_cast<std::size_t>(row.depth);
    names = std::max(names, row.depth == 0 ? std::min<std::size_t>(length, 24) : length);
  }
  names = std::min(names, text_width() / 2);
  const std::size_t taken = names + 2 + 9 + (weights ? 11 : 0) + 2;
  const std::size_t left = text_width() > taken + 10 ? text_width() - taken : 10;
  std::string text = fmt::format("{:<{}}  {:>9}{}  where\n", "module", names, "ops",
                                 weights ? fmt::format("{:>11}", "weights") : std::string());
  for (const TreeRow& row : tree.rows) {
    const std::string name =
        shortened(std::string(2 * static_cast<std::size_t>(row.depth), ' ') + row.name, names);
    text += fmt::format("{:<{}}  {:>9}{}  {}\n", name, names, format_count(row.ops),
                        weights ? fmt::format("{:>11}", format_bytes(row.weights)) : std::string(),
                        where(tree, row, left, colours));
  }
  return text;
}

std::string to_json(const PlacementTree& tree) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const TreeRow& row : tree.rows) {
    nlohmann::ordered_json devices = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.on_device.size(); ++i) {
      if (row.on_device[i] > 0) devices[tree.devices[i]] = row.on_device[i];
    }
    rows.push_back({{"depth", row.depth},
                    {"name", row.name},
                    {"ops", row.ops},
                    {"weight_bytes", row.weights},
                    {"devices", devices}});
  }
  return nlohmann::ordered_json{{"modules", rows}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Graph graph_of_names(const std::string& name, const std::vector<std::string>& ops) {
  GraphBuilder builder(name);
  for (const std::string& op : ops) {
    // Of the path in its name, or of what is before the last dot; in the order of the names.
    const std::size_t dot = op.find('/') == std::string::npos ? op.rfind('.') : std::string::npos;
    builder.add({.name = op,
                 .type = "op",
                 .module = dot == std::string::npos ? std::string() : op.substr(0, dot)},
                {{.bytes = 0}});
  }
  return std::move(builder).build();
}

}  // namespace emplace
