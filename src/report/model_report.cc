#include "report/model_report.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "report/prose.h"
#include "report/table.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

// Figures with a prefix of the metric system.
std::string with_prefix(double value, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t at = 0;
  while (value >= 999.5 && at + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++at;
  }
  const int digits = at == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, digits, kPrefixes[at], unit);
}

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Layers of one stack that do the same: shown as one line.
bool alike(const ModuleSummary& a, const ModuleSummary& b) {
  return is_number(last_part(a.name)) && is_number(last_part(b.name)) &&
         a.parameters == b.parameters && a.ops == b.ops && a.flops == b.flops;
}

// Module and its figures, level below level.
class ModuleTable {
 public:
  ModuleTable(double all_flops, int depth) : all_flops_(all_flops), depth_(depth) {}

  std::string write(const ModuleSummary& root) {
    add_inner(root, 1);
    std::string text = table_.to_string();
    if (left_out_ > 0) {
      text += wrapped(fmt::format("and {} more; `--json` has all of them", left_out_));
    }
    return text;
  }

 private:
  void add_inner(const ModuleSummary& parent, int level) {
    constexpr int kMostLines = 100;
    if (level > depth_) return;
    for (std::size_t first = 0; first < parent.inner.size();) {
      std::size_t end = first + 1;
      while (end < parent.inner.size() && alike(parent.inner[first], parent.inner[end])) ++end;
      if (lines_ < kMostLines) {
        add(parent.inner[first], parent.inner[end - 1], level, end - first);
      } else {
        left_out_ += end - first;
      }
      first = end;
    }
  }

  void add(const ModuleSummary& first, const ModuleSummary& last, int level, std::size_t count) {
    std::string name = std::string(static_cast<std::size_t>(2 * (level - 1)), ' ') + first.name;
    if (count > 1) name += fmt::format(" .. {}, each", last_part(last.name));
    const double share = all_flops_ > 0 ? first.flops / all_flops_ : 0;
    table_.add({name, first.parameters > 0 ? format_millions(first.parameters) : "",
                fmt::format("{:.1f} %", 100 * share), format_count(first.ops)});
    ++lines_;
    add_inner(first, level + 1);
  }

  double all_flops_;
  int depth_;
  int lines_ = 0;
  std::size_t left_out_ = 0;
  Table table_{{{"module"},
                {"parameters", Table::Align::kRight},
                {"FLOPs", Table::Align::kRight},
                {"ops", Table::Align::kRight}}};
};

void add_line(std::string& text, const char* what, const std::string& value) {
  if (!value.empty()) text += fmt::format(" {:<12} {}\n", what, value);
}

std::string flops_line(const ModelFigures& figures) {
  std::string text = format_flops(figures.total_flops()) + " a step";
  if (!figures.training) return text;
  return text + fmt::format(": {} forward, {} backward, {} update", format_flops(figures.flops[0]),
                            format_flops(figures.flops[1]), format_flops(figures.flops[2]));
}

std::string batch_line(const StepWork& work) {
  if (work.samples == 0) return "not known";
  std::string text = count_of(work.samples, "sample");
  if (work.tokens > 0) text += fmt::format(", {}", count_of(work.tokens, "token"));
  return text;
}

std::string memory_line(const ModelFigures& figures) {
  std::string text;
  if (figures.peak_bytes) text = fmt::format("{} on one device", format_bytes(*figures.peak_bytes));
  if (!figures.training) return text;
  return text + fmt::format("{}{} of activations are kept for the backward pass",
                            text.empty() ? "" : "; ", format_bytes(figures.activation_bytes));
}

std::string dtypes_line(const std::map<std::string, Bytes>& dtypes) {
  std::vector<std::pair<Bytes, std::string>> sorted;
  for (const auto& [name, bytes] : dtypes) sorted.emplace_back(-bytes, name);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> parts;
  for (const auto& [bytes, name] : sorted) {
    parts.push_back(fmt::format("{} ({})", name, format_bytes(-bytes)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string dims_lines(const std::vector<SymbolicDim>& dims) {
  std::string text;
  for (const SymbolicDim& dim : dims) {
    add_line(text, "dimension",
             fmt::format("{}{}: {}", dim.name,
                         dim.given ? fmt::format(" = {}", dim.value)
                                   : " has no value, 1 was taken (--dim " + dim.name + "=N)",
                         fmt::join(dim.where, ", ")));
  }
  return text;
}

std::string unknown_line(const ModelSummary& summary) {
  std::vector<std::string> parts;
  for (const auto& [type, count] : summary.ops_without_flops) {
    parts.push_back(fmt::format("FLOPs of {} {}", format_count(count), type));
  }
  if (summary.tensors_without_shape > 0) {
    parts.push_back(fmt::format("shapes of {}", count_of(summary.tensors_without_shape, "tensor")));
  }
  constexpr std::size_t kShown = 8;
  if (parts.size() > kShown) {
    const std::size_t more = parts.size() - kShown;
    parts.resize(kShown);
    parts.push_back(fmt::format("{} more", more));
  }
  return parts.empty() ? "nothing" : join_words(parts);
}

Json module_json(const ModuleSummary& module, int depth) {
  Json json{{"name", module.name},
            {"ops", module.ops},
            {"parameters", module.parameters},
            {"flops", module.flops}};
  if (depth <= 0 || module.inner.empty()) return json;
  json["modules"] = Json::array();
  for (const ModuleSummary& inner : module.inner) {
    json["modules"].push_back(module_json(inner, depth - 1));
  }
  return json;
}

}  // namespace

std::string format_flops(double flops) {
  return with_prefix(flops, "FLOP");
}

std::string format_millions(std::int64_t number) {
  return number < 1000 ? format_count(number) : with_prefix(static_cast<double>(number), "");
}

std::string to_text(const ModelSummary& summary, int depth) {
  const ModelFigures& figures = summary.figures;
  std::string text = fmt::format("{}: {}\n", summary.name,
                                 figures.training ? "a training step" : "a forward pass");
  add_line(text, "from", summary.source);
  add_line(text, "parameters",
           fmt::format("{} ({})", format_count(figures.parameters),
                       format_bytes(figures.parameter_bytes)));
  if (figures.state_bytes > 0) {
    add_line(text, "state", format_bytes(figures.state_bytes) + " of optimizers and buffers");
  }
  add_line(text, "FLOPs", flops_line(figures));
  add_line(text, "memory", memory_line(figures));
  add_line(text, "batch", batch_line(summary.work));
  text += dims_lines(summary.dims);
  add_line(text, "dtypes", dtypes_line(summary.dtypes));
  add_line(text, "ops",
           fmt::format("{}: {} that compute, {} parameters, inputs and constants, {} views",
                       format_count(figures.ops),
                       format_count(figures.ops - figures.sources - figures.views),
                       format_count(figures.sources), format_count(figures.views)));
  add_line(text, "not known", unknown_line(summary));
  if (summary.modules.inner.empty()) return text;
  return text + "\nModules, as --pin and --recompute take them\n" +
         ModuleTable(figures.total_flops(), depth).write(summary.modules);
}

Json to_json(const ModelSummary& summary, int depth) {
  const ModelFigures& figures = summary.figures;
  Json json{{"name", summary.name},
            {"source", summary.source},
            {"training", figures.training},
            {"parameters", figures.parameters},
            {"parameter_bytes", figures.parameter_bytes},
            {"state_bytes", figures.state_bytes},
            {"flops", figures.total_flops()},
            {"forward_flops", figures.flops[0]},
            {"backward_flops", figures.flops[1]},
            {"update_flops", figures.flops[2]},
            {"activation_bytes", figures.activation_bytes},
            {"peak_bytes", figures.peak_bytes ? Json(*figures.peak_bytes) : Json()},
            {"ops", figures.ops},
            {"sources", figures.sources},
            {"views", figures.views},
            {"tensors", figures.tensors}};
  if (summary.work.samples > 0) json["samples"] = summary.work.samples;
  if (summary.work.tokens > 0) json["tokens"] = summary.work.tokens;
  json["dims"] = Json::array();
  for (const SymbolicDim& dim : summary.dims) {
    json["dims"].push_back(
        {{"name", dim.name}, {"value", dim.value}, {"given", dim.given}, {"where", dim.where}});
  }
  json["dtypes"] = Json::object();
  for (const auto& [name, bytes] : summary.dtypes) json["dtypes"][name] = bytes;
  json["unknown"] = {{"flops", Json::object()}, {"shapes", summary.tensors_without_shape}};
  for (const auto& [type, count] : summary.ops_without_flops) {
    json["unknown"]["flops"][type] = count;
  }
  json["modules"] = Json::array();
  for (const ModuleSummary& module : summary.modules.inner) {
    if (depth > 0) json["modules"].push_back(module_json(module, depth - 1));
  }
  return json;
}

}  // namespace emplace
