#include "zoo/registry.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

#include "graph/tensor_type.h"

#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr std::string_view kZoo = "zoo:";
constexpr std::string_view kFamily = "family:";

using Group = std::vector<ModelInfo> (*)();

std::vector<ModelInfo> collect(std::initializer_list<Group> groups) {
  std::vector<ModelInfo> all;
  for (const Group group : groups) {
    for (ModelInfo& info : group()) all.push_back(std::move(info));
  }
  std::sort(all.begin(), all.end(),
            [](const ModelInfo& a, const ModelInfo& b) { return a.name < b.name; });
  return all;
}

// "batch=64,layers=4".
OptionValues parse_options(std::string_view text) {
  OptionValues values;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      fail_option("'{}' is not an option; expected key=value", item);
    }
    values.emplace_back(trim(item.substr(0, equals)), trim(item.substr(equals + 1)));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
  }
  return values;
}

}  // namespace

std::span<const ModelInfo> models() {
  static const std::vector<ModelInfo> all = collect({alexnet_models,     vgg_models,
                                                     resnet_models,      densenet_models,
                                                     inception_models,   nasnet_models,
                                                     amoebanet_models,   cifar_cnn_models,
                                                     wavenet_models,     rnnlm_models,
                                                     gnmt_models,        stacked_rnn_models,
                                                     transformer_models, transformer_xl_models,
                                                     bert_models,        gpt2_models,
                                                     llama_models,       mixture_of_experts_models,
                                                     t5_models,          vit_models,
                                                     dlrm_models});
  return all;
}

std::span<const ModelInfo> families() {
  static const std::vector<ModelInfo> all = collect({cifar10_family, ptb_family, nmt_family});
  return all;
}

bool is_zoo_name(std::string_view text) {
  return text.starts_with(kZoo) || text.starts_with(kFamily);
}

Graph build_model(std::string_view text, const TrainingOptions& training) {
  const bool family = text.starts_with(kFamily);
  std::string_view rest = text.substr(family ? kFamily.size() : kZoo.size());
  const std::string_view name = rest.substr(0, rest.find(':'));
  rest.remove_prefix(std::min(rest.size(), name.size() + 1));
  const auto known = family ? families() : models();
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const ModelInfo& info) { return info.name == name; });
  if (found == known.end()) {
    std::vector<std::string> names;
    for (const ModelInfo& info : known) names.push_back(info.name);
    fail_option("there is no {} '{}'{}; 'emplace zoo list' shows what there is",
                family ? "family" : "zoo model", name, suggestion(name, names));
  }
  return with_context(std::string(text),
                      [&] { return found->build(parse_options(rest), training); });
}

std::int64_t count_parameters(const Graph& graph) {
  std::int64_t count = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.role(op) != OpRole::kParameter) continue;
    for (const TensorId tensor : graph.outputs(op)) count += count_elements(graph.shape(tensor));
  }
  return count;
}

}  // namespace emplace::zoo
