// Models and clusters by name: files, and what is built from a name alone.
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/error.h"
#include "base/options.h"

#include "cluster/local_cluster.h"
#include "cluster/presets.h"
#include "graph/precision.h"

#include "io/file.h"
#include "io/find_gpus.h"
#include "io/model_formats.h"
#include "io/readers.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

// Whatever is wrong with the path is said when it is opened.
bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
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
  if (options.precision != Precision::kAsGiven) {
    request.set("dtype", std::string(dtype_name(precision_dtype(options.precision))));
  }
  return {std::make_shared<const Graph>(zoo::build_model(request, options.training_options)),
          nullptr};
}

// Throws an Error that says which model of the zoo may have been meant by what is no file's name.
void require_no_zoo_model(const std::string& path) {
  if (is_there(path) || path.find('/') != std::string::npos) return;
  if (has_model_ending(path)) return;
  std::vector<std::string> names;
  std::vector<std::string> full_names;
  for (const zoo::ModelInfo& model : zoo::models()) {
    names.push_back(model.name);
    full_names.push_back("zoo:" + model.name);
  }
  const std::string bare = path.substr(0, path.find(':'));
  if (suggestion(bare, names).empty()) return;
  fail(ErrorKind::kSystem, "{}: there is no such file{}", path,
       suggestion("zoo:" + bare, full_names));
}

}  // namespace

Model read_model(const std::string& path_or_name, const ReadOptions& options) {
  if (zoo::is_zoo_name(path_or_name)) return build_zoo_model(path_or_name, options);
  const bool standard_input = path_or_name == "-";
  if (!standard_input) require_no_zoo_model(path_or_name);
  const std::string content = read_file(path_or_name);
  return with_context(standard_input ? "standard input" : path_or_name, [&] {
    const std::string name =
        standard_input
            ? "model"
            : without_model_ending(std::filesystem::path(path_or_name).filename().string());
    Model model = recognise_model(content).read(content, options, name);
    if (options.precision != Precision::kAsGiven) {
      model.graph = std::make_shared<const Graph>(
          with_precision(*model.graph, precision_dtype(options.precision), options.training));
    }
    if (options.training) {
      model.graph =
          std::make_shared<const Graph>(training_step(*model.graph, options.training_options));
    }
    return model;
  });
}

std::shared_ptr<const Cluster> read_cluster(const std::string& path_or_preset) {
  if (is_local_name(path_or_preset) && !is_there(path_or_preset)) {
    const LocalOptions options = parse_local_name(path_or_preset);
    return with_context(fmt::format("cluster '{}'", path_or_preset), [&] {
      return std::make_shared<const Cluster>(local_cluster(options, find_gpus()).spec);
    });
  }
  if (!is_there(path_or_preset) && looks_like_preset(path_or_preset)) {
    return std::make_shared<const Cluster>(preset_cluster(path_or_preset));
  }
  std::error_code failure;
  if (std::filesystem::status(path_or_preset, failure).type() ==
      std::filesystem::file_type::not_found) {
    fail(ErrorKind::kSystem,
         "cluster '{}': there is no such file; expected one, a preset such as 4xp100, or "
         "local",
         path_or_preset);
  }
  const std::string content = read_file(path_or_preset);
  const std::string name = std::filesystem::path(path_or_preset).filename().string();
  return with_context(path_or_preset, [&] {
    return std::make_shared<const Cluster>(read_cluster_yaml(content, name));
  });
}

}  // namespace emplace
