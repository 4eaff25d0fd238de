// emplace show: what is where, by modules.
#include <cstdlib>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/messages.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "io/placement_file.h"
#include "report/placement_tree.h"

namespace emplace::cli {
namespace {

struct ShowArguments {
  std::string placement;
  std::string model;
  std::vector<std::string> dims;
  TrainingRequest training;
  int depth = 99;
  bool json = false;
};

PlacedOps placed_ops(const Graph& graph, const PlacementNames& names) {
  PlacedOps placed{.devices = {}, .device = std::vector<std::uint32_t>(graph.num_ops())};
  std::map<std::string, std::uint32_t> numbers;
  for (const auto& [op, device] : names.assignment) numbers.emplace(device, 0);
  for (auto& [device, number] : numbers) {
    number = static_cast<std::uint32_t>(placed.devices.size());
    placed.devices.push_back(device);
  }
  std::size_t known = 0;
  for (const auto& [name, device] : names.assignment) {
    const auto op = graph.find_op(name);
    if (!op) {
      fail_input(
          "assignment: graph '{}' has no op '{}'; was it placed as a training step, or with "
          "other options?",
          graph.name(), name);
    }
    placed.device[*op] = numbers.at(device);
    ++known;
  }
  if (known != graph.num_ops()) {
    fail_input("places {} of the {} ops of graph '{}'", known, graph.num_ops(), graph.name());
  }
  return placed;
}

std::string title(const PlacementNames& names) {
  std::string text = fmt::format("{} on {}", names.graph.empty() ? "model" : names.graph,
                                 names.cluster.empty() ? "a cluster" : printable(names.cluster));
  if (!names.placer.empty()) text += fmt::format(", placed by {}", printable(names.placer));
  if (names.step) text += fmt::format(", predicted step {}", format_time(*names.step));
  return text;
}

void show_placement(const ShowArguments& arguments) {
  const std::string content = read_file(arguments.placement);
  const PlacementNames names =
      with_context(arguments.placement, [&] { return read_placement_names(content); });
  ProblemArguments how;
  how.request.model = arguments.model;
  how.request.training = arguments.training;
  how.dims = arguments.dims;
  std::shared_ptr<const Graph> graph;
  if (arguments.model.empty()) {
    std::vector<std::string> ops;
    for (const auto& [op, device] : names.assignment) ops.push_back(op);
    graph = std::make_shared<const Graph>(graph_of_names(names.graph, ops));
  } else {
    graph = load_model(how.make()).graph;
  }
  const PlacedOps placed =
      with_context(arguments.placement, [&] { return placed_ops(*graph, names); });
  const PlacementTree tree = placement_tree(*graph, placed, arguments.depth);
  if (arguments.json) {
    fmt::print("{}",
               with_header({.format = "emplace.show/1", .model = names.graph}, to_json(tree)));
    return;
  }
  fmt::print("{}\n\n{}", title(names), to_text(tree, shows_colours(STDOUT_FILENO)));
}

}  // namespace

void add_show(Command& root, Session&) {
  auto arguments = std::make_shared<ShowArguments>();
  Command command = root.command("show", "Print what is where, by module, as a tree");
  command.text("placement", arguments->placement, "Placement file").required().type("PLACEMENT");
  command
      .text("--model", arguments->model,
            "The model that was placed; without it, modules are taken from the names of ops")
      .type("MODEL");
  command.list("--dim", arguments->dims, "Value of a symbolic ONNX dimension of the model")
      .type("NAME=N");
  add_training_options(command, arguments->training);
  command.integer("--depth", arguments->depth, 0, 99, "How deep to open modules. Default: all")
      .type("N");
  add_json(command, arguments->json);
  command.footer(
      "A module is opened where it is on several devices; percentages are of its ops.\n"
      "Example: emplace show placement.json --model model.onnx");
  command.run([arguments] { show_placement(*arguments); });
}

}  // namespace emplace::cli
