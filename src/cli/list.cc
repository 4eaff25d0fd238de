// emplace list: what there is to choose from.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/table.h"
#include "placer/scheduler.h"
#include "placers/all.h"

namespace emplace::cli {
namespace {

void print_placer(const PlacerInfo& info) {
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

void print_all() {
  Table placers({{"placer"}, {"family"}, {"what it does"}, {"from"}});
  for (const PlacerInfo* info : all_placers().list()) {
    placers.add({info->key, info->family, info->summary, info->reference});
  }
  Table orders({{"scheduler"}, {"order of the ops that are ready on a device"}});
  for (const SchedulerInfo& scheduler : schedulers()) orders.add({scheduler.key, scheduler.summary});
  fmt::print("{}\n{}\nOptions of one: emplace list PLACER\n", placers.to_string(), orders.to_string());
}

}  // namespace

void add_list(CLI::App& app, Session&) {
  auto key = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand("list", "List placers and schedulers, or one placer's options");
  command.add_option("placer", *key, "A placer, to see its options")->type_name("PLACER");
  command.footer("Example: emplace list heft");
  command.callback([key] {
    if (key->empty()) {
      print_all();
    } else {
      print_placer(all_placers().info(*key));
    }
  });
}

}  // namespace emplace::cli
