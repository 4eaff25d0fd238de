// The models that can be built, by name: "resnet-50", or with options "resnet-50:batch=64".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

#include "graph/graph.h"
#include "graph/training.h"

namespace emplace::zoo {

struct ModelInfo {
  std::string name;
  std::string summary;  // one line
  std::string source;   // the paper, or where the architecture is published
  // Of the default options, where it was published: the model must have exactly as many.
  std::optional<std::int64_t> parameters = std::nullopt;
  std::vector<OptionInfo> options = {};
  // `training` without its optimizer, which is one of the options.
  std::function<Graph(const OptionValues&, const TrainingOptions&)> build = nullptr;
};

// Sorted by name.
std::span<const ModelInfo> models();
// Random graphs of one kind, each from its seed.
std::span<const ModelInfo> families();

// Whether it names a model rather than a file: "zoo:NAME[:key=value,...]" or "family:NAME[:...]".
bool is_zoo_name(std::string_view text);

// What such a text asks for.
struct ModelRequest {
  const ModelInfo* info = nullptr;
  bool family = false;
  OptionValues options = {};  // as given

  const std::string* find(std::string_view option) const;  // nullptr: not given
  void set(const std::string& option, std::string value);  // in place of what was given
};
// "zoo:" may be left out, and a family of models may stand for its usual member ("bert" for
// "bert-base"). Throws an Error for a name that there is not, naming what is near.
ModelRequest parse_request(std::string_view text);

Graph build_model(const ModelRequest& request, const TrainingOptions& training = {});
Graph build_model(std::string_view text, const TrainingOptions& training = {});

// Numbers trained: elements of all outputs of parameter ops.
std::int64_t count_parameters(const Graph& graph);

}  // namespace emplace::zoo
