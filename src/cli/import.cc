// emplace import: a placement that another tool made, as ours.
#include <fmt/core.h>

#include "base/error.h"

#include "cli/command.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "io/exporters.h"
#include "io/file.h"
#include "io/importers.h"
#include "run/batch.h"

namespace emplace::cli {
namespace {

struct ImportArguments {
  ProblemArguments problem;
  std::string file;
  std::string format;
  std::string output;
};

std::vector<std::string> import_formats() {
  std::vector<std::string> names;
  for (const Importer& importer : importers()) names.emplace_back(importer.name);
  return names;
}

std::string import_help() {
  std::vector<std::string> formats;
  for (const Importer& importer : importers()) {
    formats.push_back(fmt::format("{} ({})", importer.name, importer.summary));
  }
  return fmt::format("{}", fmt::join(formats, ", "));
}

void run_import(const ImportArguments& arguments, Session& session) {
  const Importer& importer = find_importer(arguments.format);
  std::vector<std::string> inputs = arguments.problem.inputs();
  inputs.push_back(arguments.file);
  const Outputs outputs(session, {arguments.output}, /*json=*/false, inputs);
  const ProblemRequest given = arguments.problem.make();
  const ProblemRequest request = given.batch ? with_batch(given) : given;
  const auto problem = load_problem(request);
  PlacementFile placed;
  placed.placer = fmt::format("imported {}", importer.name);
  placed.made_with = given.made_with();
  const std::string content = read_file(arguments.file);
  placed.placement = with_context(arguments.file, [&] {
    return importer.read(
        {.problem = *problem, .content = content, .dims = request.dims, .note = note});
  });
  const std::string text =
      find_exporter("placement")
          .write({.graph = problem->graph(), .problem = problem, .placed = std::move(placed)});
  outputs.write(arguments.output.empty() ? "-" : arguments.output, text);
  for (const std::string& path : outputs.files()) say(fmt::format("wrote {}\n", path));
}

}  // namespace

void add_import(Command& root, Session& session) {
  auto arguments = std::make_shared<ImportArguments>();
  Command command =
      root.command("import", "Take a placement that another tool made, to simulate or improve it");
  arguments->problem.add_to(command);
  command.text("file", arguments->file, "What the other tool wrote").required().type("FILE");
  command.text("-f,--format", arguments->format, import_help())
      .required()
      .type("FORMAT")
      .suggest(import_formats());
  add_file(command, "-o,--output", arguments->output,
           "Placement file to write; standard output if absent");
  add_quiet(command);
  command.footer(
      "Ops that the file says nothing of follow those that they read from.\n"
      "Example: emplace import model.onnx device_map.json --cluster 4xp100 --format device_map -o "
      "theirs.json\n"
      "Then: emplace place model.onnx --cluster 4xp100 --start theirs.json");
  command.run([arguments, &session] { run_import(*arguments, session); });
}

}  // namespace emplace::cli
