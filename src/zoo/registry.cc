#include "zoo/registry.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

#include "graph/tensor_type.h"

#include "zoo/model_name.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

// What people call a family, and the member that they mostly mean.
constexpr std::pair<std::string_view, std::string_view> kShortNames[] = {
    {"bert", "bert-base"},
    {"cifar-10", "cifar-10-cnn"},
    {"deepseek", "deepseek-v3"},
    {"densenet", "densenet-121"},
    {"gnmt", "gnmt-4"},
    {"gpt-2", "gpt2-small"},
    {"gpt-oss", "gpt-oss-20b"},
    {"gpt2", "gpt2-small"},
    {"inception", "inception-v3"},
    {"llama", "llama-7b"},
    {"llama3", "llama3-8b"},
    {"mistral", "mistral-7b"},
    {"mixtral", "mixtral-8x7b"},
    {"mixture-of-experts", "mixtral-8x7b"},
    {"moe", "mixtral-8x7b"},
    {"nasnet", "nasnet-a-mobile"},
    {"nasnet-a", "nasnet-a-mobile"},
    {"resnet", "resnet-50"},
    {"sdxl", "sdxl-unet"},
    {"t5", "t5-small"},
    {"transformer", "transformer-base"},
    {"transformer-xl", "transformer-xl-8"},
    {"vgg", "vgg-16"},
    {"vit", "vit-b-16"},
    {"whisper", "whisper-large"}};

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
                                                     gpt_oss_models,     deepseek_models,
                                                     whisper_models,     sdxl_models,
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

const std::string* ModelRequest::find(std::string_view option) const {
  const std::string* value = nullptr;
  for (const auto& [name, text] : options) {
    if (name == option) value = &text;
  }
  return value;
}

void ModelRequest::set(const std::string& option, std::string value) {
  std::erase_if(options, [&](const auto& given) { return given.first == option; });
  options.emplace_back(option, std::move(value));
}

ModelRequest parse_request(std::string_view text) {
  const ModelName parts = split_name(text);
  ModelRequest request{.family = parts.family};
  std::string_view name = parts.name;
  for (const auto& [shorter, full] : kShortNames) {
    if (!request.family && name == shorter) name = full;
  }
  const auto known = request.family ? families() : models();
  std::vector<std::string> names;
  for (const ModelInfo& info : known) {
    if (info.name == name) request.info = &info;
    names.push_back(info.name);
  }
  if (request.info == nullptr) {
    fail_option("there is no {} '{}'{}; 'emplace zoo list' shows what there is",
                request.family ? "family" : "zoo model", name, suggestion(name, names));
  }
  with_context(std::string(text), [&] { request.options = parse_options(parts.options); });
  return request;
}

Graph build_model(const ModelRequest& request, const TrainingOptions& training) {
  return with_context(fmt::format("{}{}", request.family ? kFamily : kZoo, request.info->name),
                      [&] { return request.info->build(request.options, training); });
}

Graph build_model(std::string_view text, const TrainingOptions& training) {
  return build_model(parse_request(text), training);
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
