// emplace zoo: the models that can be built, and files of them.
#include <algorithm>
#include <atomic>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"

#include "graph/precision.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/messages.h"
#include "cli/progress.h"
#include "io/file.h"
#include "io/graph_json_writer.h"
#include "io/onnx_writer.h"
#include "report/table.h"
#include "run/model_summary.h"
#include "zoo/registry.h"

namespace emplace::cli {
namespace {

using Json = nlohmann::ordered_json;
using zoo::ModelInfo;

constexpr std::string_view kZoo = "zoo:";
constexpr std::string_view kFamily = "family:";
// A model with its default options.
ModelFigures measure(const ModelInfo& info) {
  return figures_of(std::make_shared<const Graph>(info.build({}, {})));
}

// Empty where the model has none, or where it depends on the seed (0).
std::string batch_of(const ModelInfo& info) {
  for (const OptionInfo& option : info.options) {
    if (option.name == "batch" && option.default_value != "0") return option.default_value;
  }
  return {};
}

struct Listed {
  std::string name;  // as a model argument has it, less "zoo:"
  const ModelInfo& info;
};

std::vector<Listed> everything() {
  std::vector<Listed> all;
  for (const ModelInfo& info : zoo::models()) all.push_back({info.name, info});
  for (const ModelInfo& info : zoo::families()) {
    all.push_back({std::string(kFamily) + info.name, info});
  }
  return all;
}

std::string format_tera(double flops) {
  const double tera = flops / 1e12;
  return tera < 1000 ? fmt::format("{:.3g}", tera) : fmt::format("{:.0f}", tera);
}

Json listed_json(const Listed& listed, const ModelFigures& figures) {
  const std::string batch = batch_of(listed.info);
  Json json{{"name", listed.name},
            {"parameters", figures.parameters},
            {"ops", figures.ops},
            {"flops", static_cast<std::int64_t>(figures.total_flops())},
            {"parameter_bytes", figures.parameter_bytes},
            {"peak_bytes", figures.peak_bytes.value_or(0)}};
  if (!batch.empty()) json["batch"] = read_integer("batch", batch, 0, INT64_MAX);
  json["summary"] = listed.info.summary;
  json["source"] = listed.info.source;
  return json;
}

enum class ListForm { kTable, kJson, kMarkdown };

void list(ListForm form, const Session& session) {
  using Align = Table::Align;
  Table table({{"model"},
               {"parameters", Align::kRight},
               {"batch", Align::kRight},
               {"ops", Align::kRight},
               {"TFLOP", Align::kRight},
               {"weights", Align::kRight},
               {"peak", Align::kRight},
               {"what it is"}});
  Json json = Json::array();
  std::string markdown = "| model | parameters | published | source |\n|---|---:|---:|---|\n";
  {
    const std::vector<Listed> all = everything();
    std::atomic<std::size_t> i{0};
    const Progress progress([&] {
      const std::size_t at = std::min(i.load(), all.size() - 1);
      return fmt::format("building {} ({} of {})", all[at].name, at + 1, all.size());
    });
    for (; i < all.size() && !session.cancelled; ++i) {
      const ModelInfo& info = all[i].info;
      const ModelFigures figures = with_context(all[i].name, [&] { return measure(info); });
      json.push_back(listed_json(all[i], figures));
      markdown +=
          fmt::format("| {} | {} | {} | {} |\n", all[i].name, format_count(figures.parameters),
                      info.parameters ? format_count(*info.parameters) : "", info.source);
      table.add({all[i].name, format_count(figures.parameters), batch_of(info),
                 format_count(figures.ops), format_tera(figures.total_flops()),
                 format_bytes(figures.parameter_bytes),
                 format_bytes(figures.peak_bytes.value_or(0)), info.summary});
    }
  }
  if (session.cancelled) fail(ErrorKind::kSystem, "interrupted");
  if (form == ListForm::kJson) {
    fmt::print("{}", with_header({.format = "emplace.models/1"}, Json{{"models", json}}.dump()));
    return;
  }
  if (form == ListForm::kMarkdown) {
    fmt::print("{}", markdown);
    return;
  }
  fmt::print(
      "Of a step with each model's default options; peak is the memory that the step takes on one "
      "device.\n\n{}\n"
      "Use one as zoo:NAME[:key=value,...], a random graph of a family as family:NAME:seed=N.\n"
      "Options of one: emplace info zoo:NAME\n",
      table.to_string());
}

struct ModelExportArguments {
  std::string name;
  std::string output;
  TrainingRequest training;
};

// The forward pass, unless a training step was asked for in so many words.
std::string export_onnx(zoo::ModelRequest request, const TrainingRequest& training) {
  const std::string given = training.first_given();
  const std::string* wanted = request.find("training");
  if (!given.empty() || (wanted != nullptr && read_flag("training", *wanted))) {
    fail_option("{} is for a training step, and ONNX holds a forward pass; write it as .json",
                given.empty() ? "training=true" : given);
  }
  request.set("training", "false");
  if (!training.precision.empty()) {
    const DType dtype = precision_dtype(parse_precision(training.precision));
    request.set("dtype", std::string(dtype_name(dtype)));
  }
  return write_onnx(zoo::build_model(request));
}

void export_model(const ModelExportArguments& arguments) {
  const std::string& given = arguments.name;
  const std::string name = zoo::is_zoo_name(given) ? given : std::string(kZoo) + given;
  std::string_view ending = arguments.output;
  if (ending.ends_with(".gz")) ending.remove_suffix(std::string_view(".gz").size());
  std::string content;
  if (ending.ends_with(".json")) {
    content = write_graph_json(*load_model(name, arguments.training).graph);
  } else if (ending.ends_with(".onnx")) {
    content = with_context(
        name, [&] { return export_onnx(zoo::parse_request(name), arguments.training); });
  } else {
    fail_option("-o {}: expected a name that ends in .json, .json.gz, .onnx or .onnx.gz",
                arguments.output);
  }
  write_file(arguments.output, content);
  say(fmt::format("wrote {}\n", arguments.output));
}

void add_list_command(Command& zoo, Session& session) {
  struct Form {
    bool json = false;
    bool markdown = false;
  };
  auto form = std::make_shared<Form>();
  Command command = zoo.command("list", "List models with their parameters, ops, FLOPs and memory");
  add_json(command, form->json);
  command.flag("--markdown", form->markdown,
               "Parameters and their sources as a table of documentation");
  command.footer("Example: emplace zoo list");
  command.run([form, &session] {
    list(form->json       ? ListForm::kJson
         : form->markdown ? ListForm::kMarkdown
                          : ListForm::kTable,
         session);
  });
}

void add_export_command(Command& zoo) {
  auto arguments = std::make_shared<ModelExportArguments>();
  Command command =
      zoo.command("export", "Write a model as graph JSON, or its forward pass as ONNX");
  command.text("model", arguments->name, "Name of a model, with options: NAME[:key=value,...]")
      .required()
      .type("NAME");
  command
      .text("-o,--output", arguments->output, "File to write: .json, .json.gz, .onnx or .onnx.gz")
      .required()
      .type("FILE");
  add_training_options(command, arguments->training, false);
  command.footer(
      "An ONNX file says the shapes of weights, not their contents.\n"
      "Example: emplace zoo export bert-base:batch=8 -o bert.onnx");
  command.run([arguments] { export_model(*arguments); });
}

}  // namespace

void add_zoo(Command& root, Session& session) {
  Command command = root.command("zoo", "List the built-in models, or write one to a file");
  command.require_command();
  add_list_command(command, session);
  add_export_command(command);
  command.footer("Example: emplace zoo export resnet-50:batch=64 -o resnet-50.json.gz");
}

}  // namespace emplace::cli
