#include "report/model_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace emplace {
namespace {

// Width by height: of boxes, and of the whole, which has a page's width.
constexpr double kAspect = 1.6;
constexpr double kAspectOfWhole = 2.3;

bool is_index(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

class MapMaker {
 public:
  MapMaker(const Graph& graph, const Modules& modules) : graph_(graph), modules_(modules) {
    nodes_.push_back({.name = graph.name()});
  }

  std::vector<MapBox> make() {
    grow();
    for (Node& node : nodes_) separate_own_ops(node);
    measure(0);
    place(0, -1, 0, 0, "");
    return std::move(boxes_);
  }

 private:
  struct Node {
    std::string name = {};
    std::string path = {};
    std::vector<std::size_t> inside = {};
    std::vector<OpId> ops = {};
    double x = 0;  // in the parent
    double y = 0;
    double width = 0;
    double height = 0;
    double margin = 0;
    double header = 0;
    std::int32_t columns = 0;
  };

  void grow() {
    std::vector<std::size_t> node_of_module(modules_.size(), 0);
    for (std::uint32_t id = 0; modules_.named && id < modules_.size(); ++id) {
      node_of_module[id] = node_of(modules_.names[id]);
    }
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      nodes_[node_of_module[modules_.of_op[op]]].ops.push_back(op);
    }
    for (Node& node : nodes_) {
      std::sort(node.ops.begin(), node.ops.end(), [&](OpId a, OpId b) {
        return std::tuple(graph_.phase(a), a) < std::tuple(graph_.phase(b), b);
      });
    }
  }

  std::size_t node_of(const std::string& path) {
    if (path.empty()) return 0;
    if (const auto found = by_path_.find(path); found != by_path_.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    const bool nested = dot != std::string::npos && dot > 0;
    const std::size_t parent = nested ? node_of(path.substr(0, dot)) : 0;
    std::string name = nested ? path.substr(dot + 1) : path;
    if (is_index(name) && parent != 0) name = nodes_[parent].name + "." + name;
    nodes_[parent].inside.push_back(nodes_.size());
    nodes_.push_back({.name = std::move(name), .path = path});
    return by_path_[path] = nodes_.size() - 1;
  }

  void separate_own_ops(Node& node) {
    if (node.ops.empty() || node.inside.empty()) return;
    own_of_.push_back({.path = node.path, .ops = std::exchange(node.ops, {})});
    node.inside.push_back(kOwn + own_of_.size() - 1);
  }

  Node& at(std::size_t id) { return id >= kOwn ? own_of_[id - kOwn] : nodes_[id]; }

  // A box around one other box says no more than that one.
  bool is_only_a_wrapper(const Node& node) const {
    return node.inside.size() == 1 && node.ops.empty();
  }

  void measure(std::size_t id) {
    Node& node = at(id);
    if (node.inside.empty()) {
      const auto count = static_cast<double>(node.ops.size());
      node.columns = std::max(1, static_cast<std::int32_t>(std::ceil(std::sqrt(count * kAspect))));
      node.width = node.columns;
      node.height = std::max(1.0, std::ceil(count / node.columns));
    } else {
      for (const std::size_t child : node.inside) measure(child);
      if (is_only_a_wrapper(node) && id != 0) {
        const Node& child = at(node.inside[0]);
        node.width = child.width;
        node.height = child.height;
        return;
      }
      fill_best_rows(node, id == 0 ? kAspectOfWhole : kAspect);
    }
    if (node.name.empty()) return;
    node.margin = 0.4 + 0.02 * std::sqrt(node.width * node.height);
    node.header = 0.9 + 0.04 * std::sqrt(node.width * node.height);
    node.width += 2 * node.margin;
    node.height += 2 * node.margin + node.header;
  }

  // Of several widths, the one with which it fits into the smallest frame of that aspect.
  void fill_best_rows(Node& node, double aspect) {
    double area = 0;
    double widest = 0;
    for (const std::size_t child : node.inside) {
      area += at(child).width * at(child).height;
      widest = std::max(widest, at(child).width);
    }
    const double gap = 0.4 + 0.015 * std::sqrt(area);
    double best = 0;
    double smallest = 0;
    for (double factor = 0.7; factor <= 2.5; factor += 0.1) {
      const double limit = std::max(widest, factor * std::sqrt(area * aspect));
      fill_rows(node, limit, gap);
      const double frame = std::max(node.width / aspect, node.height);
      if (best > 0 && frame >= smallest) continue;
      best = limit;
      smallest = frame;
    }
    fill_rows(node, best, gap);
  }

  void fill_rows(Node& node, double limit, double gap) {
    node.width = 0;
    double x = 0;
    double y = 0;
    double row = 0;
    for (const std::size_t id : node.inside) {
      Node& child = at(id);
      if (x > 0 && x + child.width > limit) {
        y += row + gap;
        x = row = 0;
      }
      child.x = x;
      child.y = y;
      x += child.width + gap;
      row = std::max(row, child.height);
      node.width = std::max(node.width, x - gap);
    }
    node.height = y + row;
  }

  // `around`: wrappers that are left out, which are named with what is in them.
  void place(std::size_t id, std::int32_t parent, double x, double y, const std::string& around) {
    const Node& node = at(id);
    const bool has_it = around.empty() || node.name.empty() || node.name.starts_with(around + ".");
    const std::string name = has_it ? node.name : around + "." + node.name;
    if (is_only_a_wrapper(node) && id != 0) return place(node.inside[0], parent, x, y, name);
    MapBox box{.parent = parent, .name = name, .path = node.path};
    box.x = x;
    box.y = y;
    box.width = node.width;
    box.height = node.height;
    box.ops = node.ops;
    box.columns = node.columns;
    box.ops_x = x + node.margin;
    box.ops_y = y + node.margin + node.header;
    const auto index = static_cast<std::int32_t>(boxes_.size());
    boxes_.push_back(box);
    for (const std::size_t child : node.inside) {
      place(child, index, box.ops_x + at(child).x, box.ops_y + at(child).y, "");
    }
  }

  static constexpr std::size_t kOwn = std::size_t{1} << 40;

  const Graph& graph_;
  const Modules& modules_;
  std::vector<Node> nodes_;
  std::vector<Node> own_of_;  // ops beside boxes; their ids begin at kOwn
  std::map<std::string, std::size_t> by_path_;
  std::vector<MapBox> boxes_;
};

}  // namespace

std::vector<MapBox> map_of_model(const Graph& graph, const Modules& modules) {
  return MapMaker(graph, modules).make();
}

}  // namespace emplace
