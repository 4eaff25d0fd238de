#include "report/methods_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "placer/scheduler.h"

#include "placers/all.h"

#include "tensor/methods/all.h"

#include "report/table.h"

namespace emplace {
namespace {

using MethodsJson = nlohmann::ordered_json;
using Methods = std::vector<const MethodInfo*>;

// Published systems have their papers' values beside ours.
bool has_paper(const std::vector<OptionInfo>& options) {
  return !options.empty() && !options[0].paper.empty();
}

std::string markdown_of(const Methods& methods) {
  std::string text;
  for (const MethodInfo* info : methods) {
    text += fmt::format("\n## `{}`\n{} *{}; family {}.*\n", info->key, info->summary,
                        info->reference, info->family);
    if (info->options.empty()) continue;
    const bool paper = has_paper(info->options);
    text += fmt::format("\n| option | default |{} range | what it does |\n|---|---|{}---|---|\n",
                        paper ? " preset=paper |" : "", paper ? "---|" : "");
    for (const OptionInfo& option : info->options) {
      text +=
          fmt::format("| `{}` | {} |{} {} | {} |\n", option.name, option.default_value,
                      paper ? fmt::format(" {} |", option.paper) : "", option.range, option.help);
    }
  }
  return text;
}

std::string table_of(const Methods& methods, const char* title) {
  Table table({{title}, {"family"}, {"what it does"}, {"from"}});
  for (const MethodInfo* info : methods) {
    table.add({info->key, info->family, info->summary, info->reference});
  }
  return table.to_string();
}

MethodsJson methods_as_json(const MethodInfo& info) {
  MethodsJson json{{"key", info.key},
                   {"family", info.family},
                   {"summary", info.summary},
                   {"reference", info.reference},
                   {"randomized", info.randomized},
                   {"learns", info.learns}};
  json["options"] = options_json(info.options);
  return json;
}

MethodsJson methods_as_json(const Methods& methods) {
  MethodsJson json = MethodsJson::array();
  for (const MethodInfo* info : methods) json.push_back(methods_as_json(*info));
  return json;
}

const MethodInfo& find_method(const std::string& key) {
  const Methods partition = all_partition_methods().list();
  const bool divides = std::any_of(partition.begin(), partition.end(),
                                   [&](const MethodInfo* info) { return info->key == key; });
  return divides ? all_partition_methods().info(key) : all_placers().info(key);
}

}  // namespace

std::string options_table(const std::vector<OptionInfo>& options) {
  const bool paper = has_paper(options);
  std::vector<Table::Column> columns = {{"option"}, {"default"}, {"range"}, {"what it does"}};
  if (paper) columns.insert(columns.begin() + 2, Table::Column{"preset=paper"});
  Table table(columns);
  for (const OptionInfo& option : options) {
    std::vector<std::string> row = {option.name, option.default_value, option.range, option.help};
    if (paper) row.insert(row.begin() + 2, option.paper);
    table.add(row);
  }
  return table.to_string();
}

MethodsJson options_json(const std::vector<OptionInfo>& options) {
  MethodsJson json = MethodsJson::array();
  for (const OptionInfo& option : options) {
    json.push_back({{"name", option.name},
                    {"type", option.type},
                    {"default", option.default_value},
                    {"range", option.range},
                    {"help", option.help}});
    if (!option.paper.empty()) json.back()["paper"] = option.paper;
  }
  return json;
}

std::string method_text(const std::string& key) {
  const MethodInfo& info = find_method(key);
  std::string text =
      fmt::format("{} ({})\n  {}\n  {}\n", info.key, info.family, info.summary, info.reference);
  if (info.options.empty()) return text + "  no options\n";
  return text + "\n" + options_table(info.options);
}

std::string method_json(const std::string& key) {
  return methods_as_json(find_method(key)).dump();
}

std::string methods_text() {
  Table orders({{"scheduler"}, {"order of the ops that are ready on a device"}});
  for (const SchedulerInfo& scheduler : schedulers()) {
    orders.add({scheduler.key, scheduler.summary});
  }
  return fmt::format("{}\n{}\n{}", table_of(all_placers().list(), "placer"), orders.to_string(),
                     table_of(all_partition_methods().list(), "partition method"));
}

std::string methods_json() {
  MethodsJson json{{"placers", methods_as_json(all_placers().list())},
                   {"partition_methods", methods_as_json(all_partition_methods().list())},
                   {"schedulers", MethodsJson::array()}};
  for (const SchedulerInfo& scheduler : schedulers()) {
    json["schedulers"].push_back({{"key", scheduler.key}, {"summary", scheduler.summary}});
  }
  return json.dump();
}

std::string methods_page() {
  std::string text = "# Placers\n\nWritten by `emplace list --markdown`.\n" +
                     markdown_of(all_placers().list()) +
                     "\n# Partition methods\n\nOf `emplace partition --method` "
                     "(docs/partitioning.md).\n" +
                     markdown_of(all_partition_methods().list()) +
                     "\n# Schedulers\n\n| key | order of the ops that are ready on a device "
                     "|\n|---|---|\n";
  for (const SchedulerInfo& scheduler : schedulers()) {
    text += fmt::format("| `{}` | {} |\n", scheduler.key, scheduler.summary);
  }
  return text;
}

}  // namespace emplace
