// emplace profile-fit: measured graphs of a device in, a device kind with its cost curves out.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "base/options.h"

#include "cluster/device_kinds.h"

#include "cost/fit.h"

#include "cli/command.h"
#include "cli/output.h"
#include "io/cluster_yaml_writer.h"
#include "io/readers.h"
#include "report/fit_report.h"

namespace emplace::cli {
namespace {

struct FitArguments {
  std::vector<std::string> graphs;
  std::string output;
  std::string measured;  // the key of the times
  std::string name;
  std::string like;
};

std::string choose_measured(const FitArguments& arguments, std::span<const Graph* const> graphs) {
  const std::vector<std::string> found = measured_devices(graphs);
  if (found.empty()) {
    fail_input("{}: no measured times (time_us)", fmt::join(arguments.graphs, ", "));
  }
  if (arguments.measured.empty()) {
    if (found.size() == 1) return found.front();
    fail_option("the graphs have times of several devices; give one as --kind: {}",
                fmt::join(found, ", "));
  }
  if (std::find(found.begin(), found.end(), arguments.measured) == found.end()) {
    fail_option("--kind {}: the graphs have no such times{}; expected one of: {}",
                arguments.measured, suggestion(arguments.measured, found), fmt::join(found, ", "));
  }
  return arguments.measured;
}

// Published peaks and calibrated curves of a known kind; of an unknown one, what the times show.
DeviceKind choose_start(const FitArguments& arguments, std::span<const Graph* const> graphs,
                        const std::string& measured) {
  const std::string name = arguments.name.empty() ? measured : arguments.name;
  const DeviceKind* known = find_device_kind(arguments.like.empty() ? measured : arguments.like);
  if (known == nullptr && !arguments.like.empty()) {
    std::vector<std::string> kinds;
    for (const DeviceKind& kind : built_in_device_kinds()) kinds.push_back(kind.name);
    fail_option("--like {}: is no built-in kind{}; see: emplace cluster list", arguments.like,
                suggestion(arguments.like, kinds));
  }
  DeviceKind start = known != nullptr ? *known : unknown_kind(graphs, measured, name);
  start.name = name;
  const std::string peaks = known != nullptr
                                ? fmt::format("peaks of the built-in kind {}", known->name)
                                : "peaks estimated from the same times";
  start.source = fmt::format("curves fitted to {} measured graph{} ({}); {}", graphs.size(),
                             graphs.size() == 1 ? "" : "s", measured, peaks);
  return start;
}

std::string kind_yaml(const DeviceKind& kind) {
  ClusterSpec spec;
  spec.name = fmt::format("one {}, as measured", kind.name);
  spec.kinds = {kind};
  spec.devices = {
      {.name = kind.is_cpu() ? "cpu0" : "gpu0", .kind = kind.name, .memory = kind.memory}};
  return write_cluster_yaml(spec);
}

void profile_fit(const FitArguments& arguments, Session& session) {
  const Outputs outputs(session, {arguments.output}, false, arguments.graphs);
  std::vector<std::shared_ptr<const Graph>> owned;
  std::vector<const Graph*> graphs;
  for (const std::string& path : arguments.graphs) {
    owned.push_back(read_model(path).graph);
    graphs.push_back(owned.back().get());
  }
  const std::string measured = choose_measured(arguments, graphs);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const std::vector<std::string> keys = measured_devices({&graphs[i], 1});
    if (std::find(keys.begin(), keys.end(), measured) != keys.end()) continue;
    fail_input("{}: has no times of '{}'", arguments.graphs[i], measured);
  }
  const DeviceKind start = choose_start(arguments, graphs, measured);
  const DeviceKind fitted = fit_curves(graphs, measured, start);
  const std::string errors = fit_report(graphs, measured, start, fitted);
  outputs.write(arguments.output, kind_yaml(fitted));
  fmt::print("{}\n", errors);
  fmt::print("launch_us {:.3g}; wrote {}\n", fitted.launch_us, arguments.output);
  fmt::print("Use it as a cluster (add devices and links): emplace place MODEL --cluster {}\n",
             arguments.output);
  if (find_device_kind(fitted.name) != nullptr) {
    fmt::print("or with a preset: emplace place MODEL --cluster 4x{} --kinds {}\n", fitted.name,
               arguments.output);
  }
}

}  // namespace

void add_profile_fit(Command& root, Session& session) {
  auto arguments = std::make_shared<FitArguments>();
  Command command =
      root.command("profile-fit", "Fit the cost model to graphs that were measured on your device");
  command
      .list("graphs", arguments->graphs,
            "Graphs with measured op times (tools/capture_torch.py makes them)")
      .required()
      .type("GRAPH...");
  command.text("-o,--output", arguments->output, "Write the device kind here, as a cluster")
      .required()
      .type("FILE");
  command
      .text("--kind", arguments->measured,
            "Which of the graphs' times to fit, if they have those of several devices")
      .type("KEY");
  command.text("--name", arguments->name, "Name of the new kind, if not that of the times")
      .type("NAME");
  command
      .text("--like", arguments->like,
            "Built-in kind whose peaks to start from, if not the one that the times are named "
            "after; without one, peaks are estimated")
      .type("KIND");
  command.footer(
      "Example: emplace profile-fit resnet.json.gz bert.json.gz --name my-gpu -o my-gpu.yaml");
  command.run([arguments, &session] { profile_fit(*arguments, session); });
}

}  // namespace emplace::cli
