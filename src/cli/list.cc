// emplace list: what there is to choose from.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "placer/scheduler.h"

#include "placers/all.h"

#include "tensor/methods/all.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "report/table.h"

namespace emplace::cli {
namespace {

using Json = nlohmann::ordered_json;

// Published systems have their papers' values beside ours.
bool has_paper(const MethodInfo& info) {
  return !info.options.empty() && !info.options[0].paper.empty();
}

void print_method(const MethodInfo& info) {
  fmt::print("{} ({})\n  {}\n  {}\n", info.key, info.family, info.summary, info.reference);
  if (info.options.empty()) {
    fmt::print("  no options\n");
    return;
  }
  std::vector<Table::Column> columns = {{"option"}, {"default"}, {"range"}, {"what it does"}};
  if (has_paper(info)) columns.insert(columns.begin() + 2, Table::Column{"preset=paper"});
  Table table(columns);
  for (const OptionInfo& option : info.options) {
    std::vector<std::string> row = {option.name, option.default_value, option.range, option.help};
    if (has_paper(info)) row.insert(row.begin() + 2, option.paper);
    table.add(row);
  }
  fmt::print("\n{}", table.to_string());
}

void print_markdown(const std::vector<const MethodInfo*>& methods) {
  for (const MethodInfo* info : methods) {
    fmt::print("\n## `{}`\n{} *{}; family {}.*\n", info->key, info->summary, info->reference,
               info->family);
    if (info->options.empty()) continue;
    const bool paper = has_paper(*info);
    fmt::print("\n| option | default |{} range | what it does |\n|---|---|{}---|---|\n",
               paper ? " preset=paper |" : "", paper ? "---|" : "");
    for (const OptionInfo& option : info->options) {
      fmt::print("| `{}` | {} |{} {} | {} |\n", option.name, option.default_value,
                 paper ? fmt::format(" {} |", option.paper) : "", option.range, option.help);
    }
  }
}

// docs/placers.md.
void print_page() {
  fmt::print("# Placers\n\nWritten by `emplace list --markdown`.\n");
  print_markdown(all_placers().list());
  fmt::print("\n# Partition methods\n\nOf `emplace partition --method` (docs/partitioning.md).\n");
  print_markdown(all_partition_methods().list());
  fmt::print(
      "\n# Schedulers\n\n| key | order of the ops that are ready on a device |\n|---|---|\n");
  for (const SchedulerInfo& scheduler : schedulers())
    fmt::print("| `{}` | {} |\n", scheduler.key, scheduler.summary);
}

std::string partition_methods_table() {
  Table methods({{"partition method"}, {"family"}, {"what it does"}, {"from"}});
  for (const MethodInfo* info : all_partition_methods().list()) {
    methods.add({info->key, info->family, info->summary, info->reference});
  }
  return methods.to_string();
}

bool is_partition_method(const std::string& key) {
  const auto all = all_partition_methods().list();
  return std::any_of(all.begin(), all.end(),
                     [&](const MethodInfo* info) { return info->key == key; });
}

void print_all() {
  Table placers({{"placer"}, {"family"}, {"what it does"}, {"from"}});
  for (const MethodInfo* info : all_placers().list()) {
    placers.add({info->key, info->family, info->summary, info->reference});
  }
  Table orders({{"scheduler"}, {"order of the ops that are ready on a device"}});
  for (const SchedulerInfo& scheduler : schedulers())
    orders.add({scheduler.key, scheduler.summary});
  fmt::print("{}\n{}\n{}\nOptions of one: emplace list NAME\n", placers.to_string(),
             orders.to_string(), partition_methods_table());
}

Json option_json(const OptionInfo& option) {
  Json json{{"name", option.name},
            {"type", option.type},
            {"default", option.default_value},
            {"range", option.range},
            {"help", option.help}};
  if (!option.paper.empty()) json["paper"] = option.paper;
  return json;
}

Json method_json(const MethodInfo& info) {
  Json json{{"key", info.key},
            {"family", info.family},
            {"summary", info.summary},
            {"reference", info.reference},
            {"randomized", info.randomized},
            {"learns", info.learns},
            {"options", Json::array()}};
  for (const OptionInfo& option : info.options) json["options"].push_back(option_json(option));
  return json;
}

Json methods_json(const std::vector<const MethodInfo*>& methods) {
  Json json = Json::array();
  for (const MethodInfo* info : methods) json.push_back(method_json(*info));
  return json;
}

Json everything_json() {
  Json json{{"placers", methods_json(all_placers().list())},
            {"partition_methods", methods_json(all_partition_methods().list())},
            {"schedulers", Json::array()}};
  for (const SchedulerInfo& scheduler : schedulers()) {
    json["schedulers"].push_back({{"key", scheduler.key}, {"summary", scheduler.summary}});
  }
  return json;
}

const MethodInfo& find_method(const std::string& key) {
  return is_partition_method(key) ? all_partition_methods().info(key) : all_placers().info(key);
}

}  // namespace

void add_list(Command& root, Session&) {
  struct Arguments {
    std::string key;
    bool markdown = false;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  Command command =
      root.command("list", "List placers, schedulers and partition methods, or one's options");
  command.text("placer", arguments->key, "A placer or partition method, to see its options")
      .type("NAME");
  command.flag("--markdown", arguments->markdown, "Everything as a page of documentation");
  add_json(command, arguments->json);
  command.footer("Example: emplace list heft");
  command.run([arguments] {
    const bool all = arguments->key.empty();
    if (arguments->markdown) {
      print_page();
    } else if (arguments->json) {
      const Json json = all ? everything_json() : method_json(find_method(arguments->key));
      fmt::print("{}", with_header({.format = all ? "emplace.methods/1" : "emplace.method/1"},
                                   json.dump()));
    } else if (all) {
      print_all();
    } else {
      print_method(find_method(arguments->key));
    }
  });
}

}  // namespace emplace::cli
