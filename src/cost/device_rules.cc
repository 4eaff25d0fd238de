#include "cost/device_rules.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/options.h"
#include "base/text.h"

#include "cluster/device_pattern.h"
#include "graph/layers.h"
#include "graph/modules.h"

namespace emplace {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) part = trim(part);
  return parts;
}

// Whether the pattern is of the module or of one around it.
bool matches_module(const std::string& pattern, std::string_view module) {
  for (std::size_t end = module.find('.');; end = module.find('.', end + 1)) {
    if (!module.empty() && matches_pattern(pattern, module.substr(0, end))) return true;
    if (end == std::string_view::npos) return false;
  }
}

// What a person may have meant by a name that is no module's: the nearest of modules and what is
// around them, and the layers, of which there are few.
std::string known_modules(const Modules& modules, const std::string& name) {
  if (!modules.named) return "; its ops name no modules";
  std::vector<std::string> around;
  for (const std::string& module : modules.names) {
    for (std::size_t end = module.find('.'); end != std::string::npos;
         end = module.find('.', end + 1)) {
      around.push_back(module.substr(0, end));
    }
    around.push_back(module);
  }
  constexpr std::size_t kShown = 10;
  std::vector<std::string> shown;
  for (std::string& layer : layers_of_modules(modules)) {
    if (layer.empty() || std::find(shown.begin(), shown.end(), layer) != shown.end()) continue;
    shown.push_back(shown.size() < kShown ? std::move(layer) : "...");
    if (shown.size() > kShown) break;
  }
  return fmt::format("{}; there are {}", suggestion(name, around), fmt::join(shown, ", "));
}

std::vector<bool> matching_ops(const Graph& graph, const Modules& modules, const DeviceRule& rule) {
  std::vector<bool> module_matches(modules.size());
  for (std::uint32_t module = 0; module < modules.size(); ++module) {
    module_matches[module] = matches_module(rule.ops, modules.names[module]);
  }
  std::vector<bool> matching(graph.num_ops());
  bool any = false;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    matching[op] = module_matches[modules.of_op[op]] ||
                   matches_pattern(rule.ops, graph.op_name(op)) ||
                   matches_module(rule.ops, graph.module(op));
    any = any || matching[op];
  }
  if (!any) {
    fail_option("{}: no op and no module of the model is called '{}'{}", rule.to_string(), rule.ops,
                known_modules(modules, rule.ops));
  }
  return matching;
}

std::vector<bool> matching_devices(const Cluster& cluster, const DeviceRule& rule) {
  std::vector<bool> matching(cluster.num_devices(), false);
  for (const std::string& pattern : rule.devices) {
    bool any = false;
    for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
      if (names_device(pattern, cluster.device(device))) {
        matching[device] = any = true;
      }
    }
    if (any) continue;
    std::vector<std::string> names;
    for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
      names.push_back(cluster.device(device).name);
    }
    fail_option("{}: '{}' is no device, and no device's kind, of '{}', which has {}",
                rule.to_string(), pattern, cluster.name(), fmt::join(names, ", "));
  }
  return matching;
}

}  // namespace

DeviceRule DeviceRule::parse(Kind kind, const std::string& text) {
  const std::size_t equals = text.rfind('=');
  DeviceRule rule{
      kind, equals == std::string::npos ? text : std::string(trim(text.substr(0, equals))), {}};
  if (equals != std::string::npos) rule.devices = split(text.substr(equals + 1), ',');
  const bool blank = std::any_of(rule.devices.begin(), rule.devices.end(),
                                 [](const std::string& device) { return device.empty(); });
  if (rule.ops.empty() || rule.devices.empty() || blank) {
    fail_option("{} {}: expected OPS=DEVICE, e.g. \"encoder.*=gpu0\"",
                kind == Kind::kPin ? "pin" : "forbid", text);
  }
  return rule;
}

std::string DeviceRule::to_string() const {
  return fmt::format("{} \"{}={}\"", kind == Kind::kPin ? "pin" : "forbid", ops,
                     fmt::join(devices, ","));
}

RuledDevices::RuledDevices(const Graph& graph, const Cluster& cluster,
                           std::vector<DeviceRule> rules)
    : rules_(std::move(rules)) {
  if (rules_.empty()) return;
  sets_.emplace_back();
  for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
    sets_.front().devices.push_back(device);
  }
  set_of_op_.assign(graph.num_ops(), 0);
  const Modules modules = infer_modules(graph);
  for (std::uint32_t rule = 0; rule < rules_.size(); ++rule) {
    apply(graph, cluster, rule, matching_ops(graph, modules, rules_[rule]));
  }
}

void RuledDevices::apply(const Graph& graph, const Cluster& cluster, std::uint32_t rule,
                         const std::vector<bool>& concerned) {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  const std::vector<bool> matching = matching_devices(cluster, rules_[rule]);
  const bool keep_matching = rules_[rule].kind == DeviceRule::Kind::kPin;
  std::vector<std::uint32_t> narrowed(sets_.size(), kNone);  // by the set before this rule
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!concerned[op]) continue;
    const std::uint32_t before = set_of_op_[op];
    if (narrowed[before] == kNone) {
      narrowed[before] = static_cast<std::uint32_t>(sets_.size());
      RuleSet set = sets_[before];
      set.rules.push_back(rule);
      std::erase_if(set.devices,
                    [&](DeviceId device) { return matching[device] != keep_matching; });
      sets_.push_back(std::move(set));
    }
    set_of_op_[op] = narrowed[before];
    if (sets_[set_of_op_[op]].devices.empty()) {
      fail_option("op '{}': no device is left to it{}", graph.op_name(op), describe(op));
    }
  }
}

std::string RuledDevices::describe(OpId op) const {
  if (rules_.empty()) return "";
  std::string text;
  for (const std::uint32_t rule : sets_[set_of_op_[op]].rules) {
    text += (text.empty() ? " by " : " and ") + rules_[rule].to_string();
  }
  return text;
}

}  // namespace emplace
