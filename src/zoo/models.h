// The families of models, one file each. registry.cc lists them.
#pragma once

#include <vector>

#include "zoo/registry.h"

namespace emplace::zoo {

// Convolutional networks.
std::vector<ModelInfo> alexnet_models();
std::vector<ModelInfo> vgg_models();
std::vector<ModelInfo> resnet_models();  // with wide-resnet
std::vector<ModelInfo> densenet_models();
std::vector<ModelInfo> inception_models();
std::vector<ModelInfo> nasnet_models();
std::vector<ModelInfo> amoebanet_models();
std::vector<ModelInfo> cifar_cnn_models();
std::vector<ModelInfo> wavenet_models();

// Recurrent networks.
std::vector<ModelInfo> rnnlm_models();
std::vector<ModelInfo> gnmt_models();
std::vector<ModelInfo> stacked_rnn_models();

// Attention.
std::vector<ModelInfo> transformer_models();
std::vector<ModelInfo> transformer_xl_models();
std::vector<ModelInfo> bert_models();
std::vector<ModelInfo> gpt2_models();
std::vector<ModelInfo> llama_models();  // with mistral
std::vector<ModelInfo> mixture_of_experts_models();
std::vector<ModelInfo> gpt_oss_models();
std::vector<ModelInfo> deepseek_models();
std::vector<ModelInfo> whisper_models();
std::vector<ModelInfo> sdxl_models();
std::vector<ModelInfo> t5_models();
std::vector<ModelInfo> vit_models();

// Others.
std::vector<ModelInfo> dlrm_models();

// Random graphs.
std::vector<ModelInfo> cifar10_family();
std::vector<ModelInfo> ptb_family();
std::vector<ModelInfo> nmt_family();

}  // namespace emplace::zoo
