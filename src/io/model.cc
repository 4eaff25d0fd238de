// Which reader a file is for, told by its content; and models that are built, not read.
#include <cctype>
#include <filesystem>
#include <string_view>

#include "base/check.h"
#include "base/error.h"

#include "cluster/presets.h"

#include "io/file.h"
#include "io/readers.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

std::string stem_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {".gz", ".json", ".onnx", ".txt", ".graph"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

char first_character(std::string_view text) {
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) return c;
  }
  return '\0';
}

// A PipeDream profile is lines of "node1 -- ..." and of TAB "node1 -- node2".
bool is_pipedream(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || !text.substr(start).starts_with("node")) return false;
  return text.substr(start, text.find('\n', start) - start).find(" -- ") != std::string_view::npos;
}

Model read_by_content(const std::string& content, const ReadOptions& options,
                      const std::string& name) {
  if (first_character(content) == '\0') fail_input("the file is empty");
  if (first_character(content) == '{') {
    // Either way malformed JSON is said to be so by the reader that is tried.
    if (content.find("\"maxSizePerFPGA\"") != std::string::npos) {
      return read_dnn_partitioning(content, name);
    }
    return {std::make_shared<const Graph>(read_graph_json(content)), nullptr};
  }
  if (is_pipedream(content)) {
    return {std::make_shared<const Graph>(read_pipedream(content, name)), nullptr};
  }
  return {std::make_shared<const Graph>(read_onnx(content, options, name)), nullptr};
}

std::string optimizer_name(Optimizer optimizer) {
  for (const std::string& name : optimizer_names()) {
    if (parse_optimizer(name) == optimizer) return name;
  }
  EMPLACE_CHECK(false);
}

Model build_zoo_model(const std::string& name, const ReadOptions& options) {
  if (!options.dims.empty()) {
    fail_option("{}: has no symbolic dimension '{}'; a zoo model's sizes are options of its name",
                name, options.dims.begin()->first);
  }
  zoo::ModelRequest request = zoo::parse_request(name);
  if (options.training) request.set("training", "true");
  if (options.optimizer_chosen) {
    request.set("optimizer", optimizer_name(options.training_options.optimizer));
  }
  return {std::make_shared<const Graph>(zoo::build_model(request, options.training_options)),
          nullptr};
}

}  // namespace

Model read_model(const std::string& path_or_name, const ReadOptions& options) {
  if (zoo::is_zoo_name(path_or_name)) return build_zoo_model(path_or_name, options);
  const std::string content = read_file(path_or_name);
  return with_context(path_or_name, [&] {
    Model model = read_by_content(content, options, stem_of(path_or_name));
    if (options.training) {
      model.graph =
          std::make_shared<const Graph>(training_step(*model.graph, options.training_options));
    }
    return model;
  });
}

std::shared_ptr<const Cluster> read_cluster(const std::string& path_or_preset) {
  if (!std::filesystem::exists(path_or_preset) && looks_like_preset(path_or_preset)) {
    return std::make_shared<const Cluster>(preset_cluster(path_or_preset));
  }
  if (!std::filesystem::exists(path_or_preset)) {
    fail(ErrorKind::kSystem,
         "cluster '{}': there is no such file; expected one, or a preset such as 4xp100",
         path_or_preset);
  }
  const std::string content = read_file(path_or_preset);
  return with_context(path_or_preset,
                      [&] { return std::make_shared<const Cluster>(read_cluster_yaml(content)); });
}

}  // namespace emplace
