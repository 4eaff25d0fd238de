#include "run/batch.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "base/error.h"

#include "io/file.h"
#include "io/model_formats.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

constexpr const char* kBatch = "batch";

// "batch", "batch_size", "Batch", "N".
bool is_called_batch(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find(kBatch) != std::string::npos || name == "n" || name == "bs";
}

const OptionInfo* batch_option(const zoo::ModelRequest& request) {
  for (const OptionInfo& option : request.info->options) {
    if (option.name == kBatch) return &option;
  }
  return nullptr;
}

std::string zoo_name(const zoo::ModelRequest& request) {
  std::string text = (request.family ? "family:" : "zoo:") + request.info->name;
  for (std::size_t i = 0; i < request.options.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? ":" : ",", request.options[i].first,
                        request.options[i].second);
  }
  return text;
}

std::int64_t zoo_samples(const std::string& model) {
  const zoo::ModelRequest request = zoo::parse_request(model);
  const OptionInfo* option = batch_option(request);
  if (option == nullptr) return 0;
  const std::string* given = request.find(kBatch);
  return read_integer(kBatch, given != nullptr ? *given : option->default_value, 0, INT64_MAX);
}

// That all inputs begin with, but for those of which there is one for all samples.
std::int64_t shared_first_dimension(const Graph& graph) {
  std::set<std::int64_t> sizes;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.role(op) != OpRole::kInput || graph.outputs(op).empty()) continue;
    const auto shape = graph.shape(graph.outputs(op)[0]);
    if (!shape.empty()) sizes.insert(shape[0]);
  }
  if (sizes.size() > 1) sizes.erase(1);
  return sizes.size() == 1 ? *sizes.begin() : 0;
}

std::int64_t count_samples(const ProblemRequest& request, const Graph& graph) {
  if (request.batch) return *request.batch;
  if (zoo::is_zoo_name(request.model)) return zoo_samples(request.model);
  for (const auto& [name, value] : request.dims) {
    if (is_called_batch(name)) return value;
  }
  return graph.source().starts_with("ONNX") ? shared_first_dimension(graph) : 0;
}

}  // namespace

std::string batch_symbol(const std::vector<OnnxInput>& inputs) {
  std::set<std::string> symbols;
  for (const OnnxInput& input : inputs) {
    if (!input.shape.empty() && !input.shape[0].symbol.empty()) {
      symbols.insert(input.shape[0].symbol);
    }
  }
  if (symbols.size() > 1) std::erase_if(symbols, [](const auto& s) { return !is_called_batch(s); });
  return symbols.size() == 1 ? *symbols.begin() : "";
}

ProblemRequest with_batch(const ProblemRequest& request) {
  ProblemRequest made = request;
  made.batch.reset();
  if (zoo::is_zoo_name(request.model)) {
    zoo::ModelRequest model = zoo::parse_request(request.model);
    if (batch_option(model) == nullptr) fail_option("{}: has no batch", request.model);
    model.set(kBatch, fmt::format("{}", *request.batch));
    made.model = zoo_name(model);
    return made;
  }
  const std::string content = read_file(request.model);
  bool onnx = false;
  const std::string symbol = with_context(request.model, [&] {
    onnx = recognise_model(content).name == "ONNX";
    return onnx ? batch_symbol(read_onnx_inputs(content)) : "";
  });
  if (symbol.empty()) {
    fail_option("{}: its batch cannot be set: {}", request.model,
                onnx ? "its inputs do not begin with one symbolic dimension"
                     : "only zoo models and ONNX files with a symbolic batch can have another");
  }
  made.dims[symbol] = *request.batch;
  return made;
}

StepWork work_of(const ProblemRequest& request, const Graph& graph) {
  StepWork work = work_of(graph);
  work.samples = count_samples(request, graph);
  if (work.samples > 0) work.tokens = count_tokens(graph);
  return work;
}

}  // namespace emplace
