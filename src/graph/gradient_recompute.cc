#include "graph/gradient_recompute.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/options.h"
#include "base/string_pool.h"
#include "base/text.h"

namespace emplace {
namespace {

// Every module that an op names, and every module around it; parents have lower numbers.
class ModuleTree {
 public:
  static constexpr std::uint32_t kRoot = 0;  // the whole model, which has no name

  explicit ModuleTree(const Graph& graph) : of_string_(graph.strings().size(), kRoot) {
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      std::uint32_t& module = of_string_[graph.module_id(op)];
      if (module == kRoot && graph.module_id(op) != kEmptyString) module = add(graph.module(op));
    }
  }

  std::uint32_t size() const { return names_.size(); }
  std::string_view name(std::uint32_t module) const { return names_.get(module); }
  std::uint32_t parent(std::uint32_t module) const { return parents_[module]; }
  std::uint32_t of(const Graph& graph, OpId op) const { return of_string_[graph.module_id(op)]; }

 private:
  std::uint32_t add(std::string_view path) {
    std::uint32_t module = kRoot;
    for (std::size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
      const std::uint32_t inner = names_.intern(path.substr(0, dot));
      if (inner == parents_.size()) parents_.push_back(module);
      module = inner;
      if (dot == std::string_view::npos) return module;
    }
  }

  StringPool names_;
  std::vector<std::uint32_t> parents_{kRoot};
  std::vector<std::uint32_t> of_string_;  // by the graph's StringId
};

[[noreturn]] void report_unmatched(const std::string& pattern, const ModuleTree& tree) {
  std::vector<std::string> known;
  for (std::uint32_t module = 1; module < tree.size(); ++module) {
    known.emplace_back(tree.name(module));
  }
  if (known.empty()) {
    fail_option("recompute: '{}' matches no module: the ops of this graph name none", pattern);
  }
  const std::string near = suggestion(pattern, known);
  constexpr std::size_t kShown = 10;
  const bool more = known.size() > kShown;
  if (more) known.resize(kShown);
  fail_option("recompute: '{}' matches no module{}; there are: {}{}", pattern, near,
              fmt::join(known, ", "), more ? ", ..." : "");
}

}  // namespace

std::vector<std::uint32_t> find_segments(const Graph& graph,
                                         const std::vector<std::string>& patterns) {
  if (patterns.empty()) return {};
  const ModuleTree tree(graph);
  std::vector<std::uint32_t> segment_of_module(tree.size(), kNoSegment);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (std::uint32_t module = 1; module < tree.size(); ++module) {
      if (!matches_pattern(pattern, tree.name(module))) continue;
      segment_of_module[module] = module;
      any = true;
    }
    if (!any) report_unmatched(pattern, tree);
  }
  // Outermost matches win, and everything inside of a segment belongs to it.
  for (std::uint32_t module = 1; module < tree.size(); ++module) {
    const std::uint32_t around = segment_of_module[tree.parent(module)];
    if (around != kNoSegment) segment_of_module[module] = around;
  }
  std::vector<std::uint32_t> segments(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op)
    segments[op] = segment_of_module[tree.of(graph, op)];
  return segments;
}

bool is_random(std::string_view type) {
  static constexpr std::array<std::string_view, 7> kRandom{
      "Bernoulli",        "BiasDropout",   "Multinomial",       "RandomNormal",
      "RandomNormalLike", "RandomUniform", "RandomUniformLike",
  };
  return std::find(kRandom.begin(), kRandom.end(), type) != kRandom.end();
}

}  // namespace emplace
