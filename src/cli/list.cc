// emplace list: what there is to choose from.
#include <algorithm>

#include <fmt/core.h>

#include "placer/scheduler.h"

#include "placers/all.h"

#include "tensor/methods/all.h"

#include "cli/command.h"
#include "report/table.h"

namespace emplace::cli {
namespace {

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

}  // namespace

void add_list(Command& root, Session&) {
  auto key = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  Command command =
      root.command("list", "List placers, schedulers and partition methods, or one's options");
  command.text("placer", *key, "A placer or partition method, to see its options").type("NAME");
  command.flag("--markdown", *markdown, "Everything as a page of documentation");
  command.footer("Example: emplace list heft");
  command.run([key, markdown] {
    if (*markdown) {
      print_page();
    } else if (key->empty()) {
      print_all();
    } else {
      print_method(is_partition_method(*key) ? all_partition_methods().info(*key)
                                             : all_placers().info(*key));
    }
  });
}

}  // namespace emplace::cli
