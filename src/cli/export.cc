// emplace export: a placement, or its model, in the forms that other programs take.
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "io/exporters.h"
#include "io/file.h"
#include "io/folder.h"
#include "run/batch.h"

namespace emplace::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ExportArguments {
  ProblemArguments problem;
  SavedPlacementArguments saved;
  std::string format;
  std::string output;
  int micro_batches = 0;
  bool json = false;
};

using Of = Exporter::Of;

std::string_view needs(const Exporter& exporter) {
  switch (exporter.of) {
    case Of::kModel:
      return "is of the model alone and takes no placement file";
    case Of::kPlacement:
      return "needs a placement file";
    case Of::kPartition:
      return "needs a partition file, as emplace partition writes it";
    case Of::kPlacementOrPartition:
    case Of::kPlacementOrDegrees:
      return "needs a placement or a partition file";
  }
  return {};
}

void note_lost(const LostCuts& lost, const Exporter& exporter) {
  const auto& sources = lost.sources;
  if (!sources.empty()) {
    note(fmt::format(
        "'{}' {} whole on some level: the plan cuts the matrices that lie side by side there each "
        "by itself, or shares them out unevenly, which this format cannot say",
        sources[0], sources.size() > 1 ? "and others are" : "is"));
  }
  // Formats of partitions alone say nothing of tensors inside of the model.
  if (!lost.inside.empty() && exporter.of == Of::kPlacementOrPartition) {
    note(fmt::format("not all cuts are said of '{}'{}: the plan has {} in other shapes",
                     lost.inside[0], lost.inside.size() > 1 ? " and others" : "",
                     lost.inside.size() > 1 ? "them" : "it"));
  }
}

// Hands the input of the format to `write`.
template <class Write>
auto with_input(const ExportArguments& arguments, const Exporter& exporter, const Write& write) {
  const bool of_model = exporter.of == Of::kModel;
  if (of_model != arguments.saved.path.empty()) {
    fail_option("--format {} {}", exporter.name, needs(exporter));
  }
  const ProblemRequest given = arguments.problem.make();
  const ProblemRequest request = given.batch ? with_batch(given) : given;
  const auto finish = [&](ExportInput input) {
    input.model = request.model;
    input.dims = request.dims;
    input.note = note;
    input.micro_batches = arguments.micro_batches;
    return with_context(request.model, [&] { return write(input); });
  };
  if (of_model) return finish({.graph = *load_model(request).graph});
  // Standard input can be read once, and then is a placement.
  const bool from_stream = arguments.saved.path == "-";
  if (from_stream && exporter.of == Of::kPartition) {
    fail_option("--format {} needs a partition file's name, not standard input", exporter.name);
  }
  const std::string content = from_stream ? std::string() : read_file(arguments.saved.path);
  const bool partition = is_partition_json(content);
  if (partition ? exporter.of == Of::kPlacement : exporter.of == Of::kPartition) {
    fail_option("{}: is a {} file; --format {} {}", arguments.saved.path,
                partition ? "partition" : "placement", exporter.name, needs(exporter));
  }
  if (partition) {
    const auto saved = with_context(arguments.saved.path, [&] {
      return std::make_shared<SavedPartition>(read_partition_json(content));
    });
    const auto graph = load_model(request).graph;
    const auto as_saved = std::make_shared<const SavedPartition>(*saved);
    const LostCuts lost =
        with_context(arguments.saved.path, [&] { return fit_partition(*saved, *graph); });
    if (exporter.of != Of::kPlacementOrDegrees) note_lost(lost, exporter);
    return finish({.graph = *graph, .partition = saved, .as_saved = as_saved});
  }
  const auto problem = load_problem(request);
  return finish(
      {.graph = problem->graph(), .problem = problem, .placed = arguments.saved.load(*problem)});
}

std::vector<std::string> export_formats() {
  std::vector<std::string> names;
  for (const Exporter& exporter : exporters()) names.emplace_back(exporter.name);
  return names;
}

std::string export_help() {
  std::vector<std::string> formats;
  for (const Exporter& exporter : exporters()) {
    const std::string_view more = exporter.of == Of::kModel       ? "; needs no placement"
                                  : exporter.of == Of::kPartition ? "; of a partition"
                                                                  : "";
    formats.push_back(fmt::format("{} ({}{})", exporter.name, exporter.summary, more));
  }
  return fmt::format("{}", fmt::join(formats, ", "));
}

void print_exported(const ExportArguments& arguments, std::optional<std::size_t> bytes) {
  Json json{{"exported", arguments.format}, {"output", arguments.output}};
  if (bytes) json["bytes"] = *bytes;
  fmt::print("{}",
             with_header({.format = "emplace.export/1", .model = arguments.problem.request.model},
                         json.dump()));
}

void run_export(const ExportArguments& arguments, Session& session) {
  const Exporter& exporter = find_exporter(arguments.format);
  if (arguments.micro_batches > 0 && !exporter.in_micro_batches) {
    std::vector<std::string_view> in_micro_batches;
    for (const Exporter& other : exporters()) {
      if (other.in_micro_batches) in_micro_batches.push_back(other.name);
    }
    fail_option("--format {} says nothing of micro-batches; expected --micro-batches with {}",
                exporter.name, fmt::join(in_micro_batches, " or "));
  }
  const bool to_stream = arguments.output.empty() || arguments.output == "-";
  if (arguments.json && to_stream) {
    fail_option("--json says what was written to a file: expected --output too");
  }
  std::vector<std::string> inputs = arguments.problem.inputs();
  inputs.push_back(arguments.saved.path);
  if (exporter.is_folder()) {
    if (to_stream) fail_option("--format {} is a folder: expected --output FOLDER", exporter.name);
    with_input(arguments, exporter, [&](const ExportInput& input) {
      write_folder(arguments.output, exporter.marker,
                   [&](const std::string& folder) { exporter.fill(input, folder); });
    });
    say(fmt::format("wrote {}\n", arguments.output));
    if (arguments.json) print_exported(arguments, std::nullopt);
    return;
  }
  const std::string output = to_stream ? "-" : arguments.output;
  const Outputs outputs(session, {output}, arguments.json, inputs);
  const std::string text = with_input(
      arguments, exporter, [&](const ExportInput& input) { return exporter.write(input); });
  outputs.write(output, text);
  for (const std::string& path : outputs.files()) {
    say(fmt::format("wrote {}\n", path));
    if (arguments.json) print_exported(arguments, text.size());
  }
}

}  // namespace

void add_export(Command& root, Session& session) {
  auto arguments = std::make_shared<ExportArguments>();
  Command command =
      root.command("export", "Write a placement or its model in a form that other programs take");
  arguments->problem.add_to(command);
  arguments->saved.add_to(command);
  command.text("-f,--format", arguments->format, export_help())
      .required()
      .type("FORMAT")
      .suggest(export_formats());
  command
      .integer("--micro-batches", arguments->micro_batches, 1, 1'000'000,
               "For torch-schedule and deepspeed: parts that a batch is divided into. Default: two "
               "for each stage")
      .type("N");
  add_file(command, "-o,--output", arguments->output,
           "File or, for formats of several files, folder to write; standard output if absent");
  command.flag("--json", arguments->json, "Print what was written as JSON on standard output");
  command.footer(
      "Example: emplace export model.json.gz placement.json --cluster 4xp100 --format trace -o "
      "trace.json");
  command.run([arguments, &session] { run_export(*arguments, session); });
}

}  // namespace emplace::cli
