// emplace info: what there is in a model.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/json_output.h"
#include "report/methods_report.h"
#include "report/model_report.h"
#include "zoo/registry.h"

namespace emplace::cli {
namespace {

struct InfoArguments {
  ModelArguments model;
  int depth = 0;  // 0: not given
  bool json = false;
};

constexpr int kUsualDepth = 2;

void show_json(const std::string& model, const ModelSummary& summary, const zoo::ModelInfo* info,
               int depth) {
  auto json = to_json(summary, depth == 0 ? kWholeTree : depth);
  if (info != nullptr) {
    json["summary"] = info->summary;
    json["paper"] = info->source;
    if (info->parameters) json["published_parameters"] = *info->parameters;
    json["options"] = options_json(info->options);
  }
  fmt::print("{}", with_header({.format = "emplace.info/1", .model = model}, json.dump()));
}

void show_text(const ModelSummary& summary, const zoo::ModelInfo* info, int depth) {
  if (info != nullptr) {
    fmt::print("{}\n{}{}\n\n", info->summary, info->source,
               info->parameters
                   ? fmt::format(", {} parameters as published", format_count(*info->parameters))
                   : "");
  }
  fmt::print("{}", to_text(summary, depth == 0 ? kUsualDepth : depth));
  if (info != nullptr)
    fmt::print("{}", "\nOptions, as in zoo:NAME:key=value,...\n" + options_table(info->options));
}

void show_model(const InfoArguments& arguments) {
  const ProblemRequest request = arguments.model.make();
  const ModelSummary summary = summarize_model(request);
  const zoo::ModelInfo* info =
      zoo::is_zoo_name(request.model) ? zoo::parse_request(request.model).info : nullptr;
  if (arguments.json) {
    show_json(request.model, summary, info, arguments.depth);
  } else {
    show_text(summary, info, arguments.depth);
  }
}

}  // namespace

void add_info(Command& root, Session&) {
  auto arguments = std::make_shared<InfoArguments>();
  Command command =
      root.command("info", "Show a model's parameters, FLOPs, memory, dimensions and modules");
  arguments->model.add_to(command);
  command
      .integer("--depth", arguments->depth, 1, 1000,
               "Levels of modules to show. Default: 2, all with --json")
      .type("N");
  add_json(command, arguments->json);
  command.footer("Example: emplace info model.onnx --dim batch=32 --training --depth 3");
  command.run([arguments] { show_model(*arguments); });
}

}  // namespace emplace::cli
