// emplace list: what there is to choose from.
#include <fmt/core.h>

#include "placer/scheduler.h"

#include "placers/all.h"

#include "cli/command.h"
#include "report/table.h"

namespace emplace::cli {
namespace {

void print_placer(const MethodInfo& info) {
  fmt::print("{} ({})\n  {}\n  {}\n", info.key, info.family, info.summary, info.reference);
  if (info.options.empty()) {
    fmt::print("  no options\n");
    return;
  }
  Table table({{"option"}, {"default"}, {"range"}, {"what it does"}});
  for (const OptionInfo& option : info.options) {
    table.add({option.name, option.default_value, option.range, option.help});
  }
  fmt::print("\n{}", table.to_string());
}

// docs/placers.md.
void print_markdown() {
  fmt::print("# Placers\n\nWritten by `emplace list --markdown`.\n");
  for (const MethodInfo* info : all_placers().list()) {
    fmt::print("\n## `{}`\n{} *{}; family {}.*\n", info->key, info->summary, info->reference,
               info->family);
    if (info->options.empty()) continue;
    fmt::print("\n| option | default | range | what it does |\n|---|---|---|---|\n");
    for (const OptionInfo& option : info->options) {
      fmt::print("| `{}` | {} | {} | {} |\n", option.name, option.default_value, option.range,
                 option.help);
    }
  }
  fmt::print(
      "\n# Schedulers\n\n| key | order of the ops that are ready on a device |\n|---|---|\n");
  for (const SchedulerInfo& scheduler : schedulers())
    fmt::print("| `{}` | {} |\n", scheduler.key, scheduler.summary);
}

void print_all() {
  Table placers({{"placer"}, {"family"}, {"what it does"}, {"from"}});
  for (const MethodInfo* info : all_placers().list()) {
    placers.add({info->key, info->family, info->summary, info->reference});
  }
  Table orders({{"scheduler"}, {"order of the ops that are ready on a device"}});
  for (const SchedulerInfo& scheduler : schedulers())
    orders.add({scheduler.key, scheduler.summary});
  fmt::print("{}\n{}\nOptions of one: emplace list PLACER\n", placers.to_string(),
             orders.to_string());
}

}  // namespace

void add_list(Command& root, Session&) {
  auto key = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  Command command = root.command("list", "List placers and schedulers, or one placer's options");
  command.text("placer", *key, "A placer, to see its options").type("PLACER");
  command.flag("--markdown", *markdown, "Everything as a page of documentation");
  command.footer("Example: emplace list heft");
  command.run([key, markdown] {
    if (*markdown) {
      print_markdown();
    } else if (key->empty()) {
      print_all();
    } else {
      print_placer(all_placers().info(*key));
    }
  });
}

}  // namespace emplace::cli
