#include "zoo/registry.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace emplace::zoo {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    build_model(text);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Zoo, every_model_has_as_many_parameters_as_published) {
  int published = 0;
  for (const ModelInfo& info : models()) {
    if (!info.parameters) continue;
    ++published;
    const Graph graph = info.build({{"batch", "1"}, {"training", "false"}}, {});
    EXPECT_EQ(count_parameters(graph), *info.parameters) << info.name;
  }
  EXPECT_GE(published, 25);
}

TEST(Zoo, every_model_trains_all_its_parameters) {
  for (const ModelInfo& info : models()) {
    const Graph graph = info.build({{"batch", "2"}}, {});
    std::int64_t parameters = 0;
    std::int64_t updates = 0;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      parameters += graph.role(op) == OpRole::kParameter;
      updates += graph.phase(op) == Phase::kUpdate && !graph.is_source(op);
    }
    EXPECT_EQ(updates, parameters) << info.name;
  }
}

TEST(Zoo, every_op_has_a_module_and_every_model_a_source) {
  for (const ModelInfo& info : models()) {
    EXPECT_FALSE(info.source.empty()) << info.name;
    EXPECT_FALSE(info.summary.empty()) << info.name;
    const Graph graph = info.build({{"batch", "1"}, {"training", "false"}}, {});
    std::int64_t without = 0;
    for (OpId op = 0; op < graph.num_ops(); ++op) without += graph.module(op).empty();
    EXPECT_LT(without, 40) << info.name;  // inputs, masks, and what joins the modules
  }
}

TEST(Zoo, a_family_of_models_stands_for_its_usual_member) {
  EXPECT_EQ(parse_request("zoo:bert").info->name, "bert-base");
  EXPECT_EQ(parse_request("gpt-2:batch=4").info->name, "gpt2-small");
}

TEST(Zoo, options_follow_the_name) {
  const ModelRequest request = parse_request("zoo:resnet-50:batch=64,optimizer=adam");
  EXPECT_EQ(*request.find("batch"), "64");
  EXPECT_EQ(request.find("layers"), nullptr);
  EXPECT_TRUE(parse_request("family:ptb:seed=3").family);
}

TEST(Zoo, mistakes_name_what_is_near) {
  EXPECT_THAT(error_of("zoo:resnet-51"), HasSubstr("did you mean 'resnet-50'"));
  EXPECT_THAT(error_of("family:cifar"), HasSubstr("there is no family 'cifar'"));
  EXPECT_THAT(error_of("zoo:vgg-16:bach=3"), HasSubstr("batch"));
  EXPECT_THAT(error_of("zoo:vgg-16:batch=1,batch=2"), HasSubstr("'batch' is given twice"));
  EXPECT_THAT(error_of("zoo:vgg-16:batch"), HasSubstr("expected key=value"));
  EXPECT_THAT(error_of("zoo:vgg-16:batch=0"), HasSubstr("batch"));
}

TEST(Zoo, a_seed_decides_a_family_graph) {
  for (const ModelInfo& info : families()) {
    std::set<std::pair<OpId, TensorId>> sizes;
    for (const char* seed : {"1", "2", "3", "4"}) {
      const Graph graph = info.build({{"seed", seed}}, {});
      const Graph again = info.build({{"seed", seed}}, {});
      EXPECT_EQ(graph.num_ops(), again.num_ops());
      sizes.emplace(graph.num_ops(), graph.num_tensors());
    }
    EXPECT_GE(sizes.size(), 3U) << info.name;
  }
}

}  // namespace
}  // namespace emplace::zoo
