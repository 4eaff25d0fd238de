// The zoo's models, executed at small sizes.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "exec/gradient_check.h"
#include "zoo/registry.h"

namespace emplace::exec {
namespace {

void add_types_without_kernel(const zoo::ModelInfo& info, std::set<std::string>& missing) {
  for (const char* training : {"true", "false"}) {
    const Graph graph = info.build({{"batch", "2"}, {"training", training}}, {});
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (!graph.is_source(op) && !has_kernel(graph.type(op))) missing.emplace(graph.type(op));
    }
  }
}

TEST(ExecZoo, there_is_a_kernel_for_every_op_of_every_model) {
  std::set<std::string> missing;
  for (const zoo::ModelInfo& info : zoo::models()) add_types_without_kernel(info, missing);
  for (const zoo::ModelInfo& info : zoo::families()) add_types_without_kernel(info, missing);
  EXPECT_EQ(missing, std::set<std::string>{});
}

TEST(ExecZoo, gradients_are_the_same_where_activations_are_computed_again) {
  const Graph step = zoo::build_model(
      "bert-base:batch=2,sequence=4,layers=2,hidden=8,heads=2,vocabulary=17,positions=8",
      {.recompute = {"bert.encoder.layer.*"}});
  bool again = false;
  for (OpId op = 0; op < step.num_ops() && !again; ++op) {
    again = step.op_name(op).ends_with("/recompute");
  }
  EXPECT_TRUE(again);
  expect_gradients(step);
}

class ExecZooModel : public testing::TestWithParam<const char*> {};

TEST_P(ExecZooModel, has_the_gradients_of_its_forward_pass) {
  expect_gradients(zoo::build_model(GetParam()), {.low = -0.5, .high = 0.5});
}

TEST_P(ExecZooModel, runs_forward_alone) {
  const Graph graph = zoo::build_model(std::string(GetParam()) + ",training=false");
  for (const torch::Tensor& value : interpret(graph, seeded_sources())) {
    EXPECT_TRUE(value.defined());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ExecZooModel,
    testing::Values(
        "cifar-10-cnn:batch=2", "resnet-50:batch=2,image=32",
        "densenet-121:batch=2,image=32,growth=4", "inception-v3:batch=1,image=75",
        "nasnet-small:batch=1,layers=3,filters=4", "amoebanet-d:batch=1,layers=3,filters=8",
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
        "dlrm:batch=2,max_rows=10,width=8", "family:cifar10:batch=1,cells=1,nodes=3,filters=4",
        "family:ptb:batch=2,nodes=4,hidden=8,sequence=3",
        "family:nmt:batch=2,layers=2,hidden=8,sequence=3"),
    [](const auto& test) {
      std::string_view text = test.param;
      if (text.starts_with("family:")) text.remove_prefix(7);
      std::string name(text.substr(0, text.find(':')));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace emplace::exec
