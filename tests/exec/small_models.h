// A model of each family of the zoo, small enough to be computed many times. VGG is missing: its
// convolutions alone have 15 million weights, and its ops are AlexNet's.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace emplace::exec {

inline constexpr const char* kSmallModels[] = {
    "alexnet:batch=1,width=8",
    "cifar-10-cnn:batch=2",
    "resnet-50:batch=2,image=32",
    "densenet-121:batch=2,image=32,growth=4",
    "inception-v3:batch=1,image=75",
    "nasnet-small:batch=1,layers=3,filters=4",
    "amoebanet-d:batch=1,layers=3,filters=8",
    "rnnlm:batch=2,layers=2,hidden=8,sequence=3,vocabulary=11",
    "stacked-rnn:batch=2,layers=2,hidden=8,sequence=3,input=8,classes=5",
    "gnmt-2:batch=2,hidden=8,sequence=3,vocabulary=11",
    "wavenet:batch=2,sequence=20,layers=4,"
    "cycle=2,hidden=4,skip=6,levels=8",
    "bert-base:batch=2,sequence=4,layers=2,hidden=8,heads=2,vocabulary=17,positions=8",
    "gpt2-small:batch=2,sequence=4,layers=2,hidden=8,heads=2,vocabulary=17,positions=8",
    "llama3-8b:batch=2,sequence=4,layers=2,hidden=16,heads=4,kv_heads=2,intermediate=12,"
    "vocabulary=17",
    "mixtral-8x7b:batch=2,sequence=4,layers=2,hidden=16,heads=4,kv_heads=2,intermediate=12,"
    "vocabulary=17,experts=4",
    "t5-small:batch=2,sequence=4,target=3,layers=2,hidden=8,heads=2,head_size=4,vocabulary=17",
    "transformer-base:batch=2,sequence=4,layers=2,hidden=8,heads=2,vocabulary=17",
    "transformer-xl-2:batch=2,sequence=4,segment=2,layers=2,hidden=8,heads=2,vocabulary=17",
    "mistral-7b:batch=2,sequence=5,layers=1,hidden=16,heads=4,kv_heads=2,intermediate=12,"
    "vocabulary=17,window=3",
    "gpt-oss-20b:batch=1,sequence=4,layers=2,hidden=16,heads=4,kv_heads=2,head_size=4,window=2,"
    "intermediate=12,vocabulary=17,experts=4,chosen=2,expert_parts=2",
    "deepseek-v3:batch=1,sequence=4,layers=2,dense=1,hidden=16,heads=2,query_rank=8,latent=6,"
    "rotary_size=4,head_size=4,intermediate=12,expert_width=8,vocabulary=17,experts=4,chosen=2,"
    "expert_parts=2",
    "whisper-tiny:batch=1,frames=8,bands=3,target=4,layers=2,hidden=8,heads=2,vocabulary=17",
    "sdxl-unet:batch=1,image=4,width=8,head_size=4,prompt=3,prompt_width=6,deep=1,groups=2",
    "vit-b-16:batch=2,image=8,patch=4,layers=2,hidden=8,heads=2,classes=5",
    "dlrm:batch=2,max_rows=10,width=8",
    "family:cifar10:batch=1,cells=1,nodes=3,filters=4",
    "family:ptb:batch=2,nodes=4,hidden=8,sequence=3",
    "family:nmt:batch=2,layers=2,hidden=8,sequence=3"};

// As the name of a test.
inline std::string name_of_model(std::string_view text) {
  if (text.starts_with("family:")) text.remove_prefix(7);
  std::string name(text.substr(0, text.find(':')));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace emplace::exec
