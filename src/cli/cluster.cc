// emplace cluster: presets and device kinds, a file to edit, and this machine as one.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "cluster/core_groups.h"
#include "cluster/device_kinds.h"
#include "cluster/local_cluster.h"
#include "cluster/presets.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/messages.h"
#include "io/cluster_yaml_writer.h"
#include "io/file.h"
#include "io/find_gpus.h"
#include "io/readers.h"
#include "io/yaml_json.h"
#include "report/table.h"

namespace emplace::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string tera(const DeviceKind& kind, std::string_view dtype) {
  const auto entry = kind.peak_flops.find(dtype);
  return entry == kind.peak_flops.end() ? "-" : fmt::format("{:.4g}", entry->second / 1e12);
}

void print_list() {
  using Align = Table::Align;
  Table kinds({{"kind"},
               {"float32", Align::kRight},
               {"tf32", Align::kRight},
               {"float16", Align::kRight},
               {"GB/s", Align::kRight},
               {"memory", Align::kRight}});
  for (const DeviceKind& kind : built_in_device_kinds()) {
    kinds.add({kind.name, tera(kind, "float32"), tera(kind, "tf32"), tera(kind, "float16"),
               fmt::format("{:.0f}", kind.memory_bandwidth / 1e9), format_bytes(kind.memory)});
  }
  fmt::print("Device kinds (peaks in TFLOP/s):\n\n{}\nPresets are COUNTxKIND, for example:\n ",
             kinds.to_string());
  for (const std::string& name : example_presets()) fmt::print(" {}", name);
  fmt::print(
      "\n\nA file to edit: emplace cluster show 4xp100 > my-box.yaml\n"
      "This machine:   emplace cluster local\n");
}

void print_list_json() {
  Json json{{"kinds", Json::array()}, {"presets", example_presets()}};
  for (const DeviceKind& kind : built_in_device_kinds()) {
    Json peaks = Json::object();
    for (const auto& [dtype, peak] : kind.peak_flops) peaks[dtype] = peak;
    json["kinds"].push_back({{"name", kind.name},
                             {"peak_flops", peaks},
                             {"memory_bandwidth", kind.memory_bandwidth},
                             {"memory_bytes", kind.memory},
                             {"launch_us", kind.launch_us},
                             {"source", kind.source}});
  }
  fmt::print("{}", with_header({.format = "emplace.kinds/1"}, json.dump()));
}

void show_cluster(const std::string& name, bool json) {
  const std::string yaml = write_cluster_yaml(read_cluster(name)->spec());
  fmt::print("{}", json ? yaml_to_json(yaml) : yaml);
}

struct LocalArguments {
  std::string groups;
  std::string link;
  bool oversubscribe = false;
  int ranks = 1;
  bool no_gpus = false;
  std::string output;
  bool json = false;
};

void describe_this_machine(const LocalArguments& arguments) {
  LocalOptions options;
  options.oversubscribe = arguments.oversubscribe;
  options.ranks = arguments.ranks;
  if (!arguments.groups.empty()) {
    options.groups = with_context("--groups", [&] { return parse_core_groups(arguments.groups); });
  }
  if (!arguments.link.empty()) {
    options.link = with_context("--link", [&] { return parse_local_link(arguments.link); });
  }
  const LocalMachine machine = this_machine();
  const auto gpus = arguments.no_gpus ? std::vector<LocalGpu>{} : find_gpus();
  const LocalCluster local = local_cluster(machine, options, gpus);
  const std::string yaml = write_cluster_yaml(Cluster(local.spec).spec());
  const std::string text = arguments.json ? yaml_to_json(yaml) : yaml;
  note(fmt::format("this machine: {}", machine_text(machine)));
  for (const std::string& warning : local.warnings) warn(warning);
  if (arguments.output.empty()) {
    fmt::print("{}", text);
  } else {
    write_file(arguments.output, text);
    say(fmt::format("wrote {}\n", arguments.output));
  }
}

void add_local(Command& cluster) {
  auto arguments = std::make_shared<LocalArguments>();
  Command local = cluster.command(
      "local", "Describe this machine as a cluster file: GPUs, and groups of cores as CPUs");
  local
      .text("--groups", arguments->groups,
            "Divide cores into CPUs: 4x3 makes four of three cores, 2x4+1x8 two of four and one of "
            "eight (default: one of all cores that links and GPUs leave)")
      .type("GROUPS");
  local
      .text("--link", arguments->link,
            "Join all devices by links of this bandwidth and latency, to which executed steps are "
            "slowed down: 1GB/s,50us (default: memory copies)")
      .type("LINK");
  local
      .integer("--ranks", arguments->ranks, 1, 1000,
               "Give each of so many ranks devices of its own, as many, so that they can measure "
               "steps at the same time")
      .type("N");
  local.flag("--oversubscribe", arguments->oversubscribe,
             "Let devices share cores where there are too few");
  local.flag("--no-gpus", arguments->no_gpus, "Leave GPUs out: groups of cores alone");
  add_file(local, "-o,--output", arguments->output,
           "Write the file here (default: standard output)");
  add_json(local, arguments->json);
  add_quiet(local);
  local.run([arguments] { describe_this_machine(*arguments); });
  local.footer("Example: emplace cluster local --groups 4x3 --link 1GB/s,50us -o four.yaml");
}

}  // namespace

void add_cluster(Command& root, Session&) {
  Command command = root.command(
      "cluster", "Show presets and device kinds, or a cluster file to edit; describe this machine");
  command.require_command();
  struct Arguments {
    std::string name;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  Command show =
      command.command("show", "Print a preset, or check and print a file, as a cluster file");
  show.text("cluster", arguments->name, "Preset or file").required().type("CLUSTER");
  add_json(show, arguments->json);
  show.run([arguments] { show_cluster(arguments->name, arguments->json); });
  add_local(command);
  Command list = command.command("list", "List presets and device kinds");
  add_json(list, arguments->json);
  list.run([arguments] { arguments->json ? print_list_json() : print_list(); });
  command.footer("Example: emplace cluster show 8xv100-nvlink > my-box.yaml");
}

}  // namespace emplace::cli
