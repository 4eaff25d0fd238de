// Fused attention: what it keeps and what it costs, and the models that have it.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/attention.h"
#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr double kGiB = 1 << 30;

// By hand: a layer of gpt2-xl at batch 8 has 8 x 25 x 1024 x 1024 scores, 800 MiB in float32. Plain
// attention keeps the softmax, the dropout's mask (a byte each) and its result: 1800 MiB. Fused,
// the op's result (50 MiB, beside the transposed copy that both keep) and a logarithm for each row
// of scores (0.8 MiB) are kept instead. That is 82.0 GiB less for 48 layers.
TEST(FusedAttention, keeps_no_scores) {
  const auto peak = [](const char* attention) {
    const Graph step = build(gpt2_models(), "gpt2-xl", {{"batch", "8"}, {"attention", attention}});
    return static_cast<double>(peak_on_one_device(step)) / kGiB;
  };
  const double plain = peak("plain");
  const double fused = peak("fused");
  EXPECT_NEAR(plain, 173, 2);
  EXPECT_GT(plain - fused, 81.9);
  EXPECT_LT(plain - fused, 82.0 + 4) << "and what the gradients of one layer's scores take";
}

TEST(FusedAttention, keeps_its_operands_its_result_and_a_logarithm_a_row) {
  const Graph step =
      build(gpt2_models(), "gpt2-small", {{"layers", "1"}, {"batch", "2"}, {"attention", "fused"}});
  const OpId gradient = step.find_op("transformer.h.0.attn.FlashAttention/grad").value();
  std::vector<std::int64_t> ranks;
  for (const TensorId tensor : step.inputs(gradient)) {
    ranks.push_back(static_cast<std::int64_t>(step.shape(tensor).size()));
  }
  EXPECT_THAT(ranks, testing::ElementsAre(4, 4, 4, 4, 4, 3));  // dY, q, k, v, Y, logarithms
  EXPECT_EQ(step.outputs(gradient).size(), 3U);
  const OpId forward = step.find_op("transformer.h.0.attn.FlashAttention").value();
  // 1024 x 1025 / 2 pairs of a query and a key that it sees, 64 elements twice, and the softmax.
  EXPECT_EQ(step.flops(forward), 2LL * 12 * (1024 * 1025 / 2) * (4 * 64 + 12));
  // The scores again, and four products for gradients.
  EXPECT_EQ(step.flops(gradient), 2LL * 12 * (1024 * 1025 / 2) * (10 * 64 + 12));
}

// Latent attention: keys of 192 numbers, values of 128. By hand, for each of 4 x 128 heads and
// 1024 x 1025 / 2 pairs: scores 2 x 192 and values 2 x 128, and a softmax; backward the scores
// again, the gradients of values and weights 2 x 128 each, of queries and keys 2 x 192 each.
TEST(FusedAttention, gradients_cost_what_their_own_sizes_do) {
  const Graph step = build(deepseek_models(), "deepseek-v3",
                           {{"layers", "1"}, {"batch", "4"}, {"sequence", "1024"}});
  constexpr std::int64_t kPairs = 4LL * 128 * (1024 * 1025 / 2);
  std::int64_t seen = 0;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (step.type(op) == "FlashAttention") {
      EXPECT_EQ(step.flops(op), kPairs * (384 + 256 + 12));
    } else if (step.type(op) == "FlashAttentionGrad") {
      EXPECT_EQ(step.flops(op), kPairs * (384 + 2 * 256 + 2 * 384 + 12));
      ++seen;
    }
  }
  EXPECT_EQ(seen, 1);
}

TEST(FusedAttention, a_window_leaves_less_to_do) {
  const auto flops = [](std::int64_t window) {
    Net net("window", {.training = false});
    const Value q = net.input("q", {1, 2, 8, 4});
    attend(net, q, q, q, {.fused = true, .causal = true, .window = window});
    const Graph graph = std::move(net).build();
    return *graph.flops(graph.find_op("FlashAttention").value());
  };
  EXPECT_EQ(flops(0), 2 * 36 * (4 * 4 + 12));
  EXPECT_EQ(flops(3), 2 * (1 + 2 + 6 * 3) * (4 * 4 + 12));
  EXPECT_EQ(flops(100), flops(0));
}

TEST(FusedAttention, is_the_default_of_models_since_2022) {
  for (const ModelInfo& info : models()) {
    for (const OptionInfo& option : info.options) {
      if (option.name != "attention") continue;
      const bool old = info.name.starts_with("bert") || info.name.starts_with("gpt2") ||
                       info.name.starts_with("vit") || info.name.starts_with("transformer");
      EXPECT_EQ(option.default_value, old ? "plain" : "fused") << info.name;
    }
  }
}

TEST(NewModels, have_the_published_parameters) {
  EXPECT_EQ(parameters_of(llama_models(), "llama3-8b"), 8'030'261'248);
  EXPECT_EQ(parameters_of(llama_models(), "llama3-70b"), 70'553'706'496);
  EXPECT_EQ(parameters_of(llama_models(), "mistral-7b"), 7'241'732'096);
  EXPECT_EQ(parameters_of(gpt_oss_models(), "gpt-oss-20b"), 20'914'757'184);
  EXPECT_EQ(parameters_of(gpt_oss_models(), "gpt-oss-120b"), 116'829'156'672);
  EXPECT_EQ(parameters_of(deepseek_models(), "deepseek-v3"), 671'026'404'352);
  EXPECT_EQ(parameters_of(vit_models(), "vit-l-16"), 304'326'632);
  EXPECT_EQ(parameters_of(sdxl_models(), "sdxl-unet"), 2'567'463'684);
  EXPECT_EQ(parameters_of(whisper_models(), "whisper-large"), 1'541'570'560);
  EXPECT_EQ(parameters_of(whisper_models(), "whisper-tiny"), 37'184'640);
}

// Sinusoids: the original has them as a buffer. Hugging Face's count, 37,760,640 for whisper-tiny,
// has them as weights that are not trained.
TEST(NewModels, whispers_encoder_does_not_train_its_positions) {
  const Graph step = build(whisper_models(), "whisper-tiny", {{"batch", "1"}});
  const OpId positions = step.find_op("model.encoder.embed_positions.weight").value();
  EXPECT_EQ(step.role(positions), OpRole::kBuffer);
  EXPECT_EQ(count_elements(step.shape(step.outputs(positions)[0])) + 37'184'640, 37'760'640);
  EXPECT_FALSE(step.find_op("model.encoder.embed_positions.weight/update"));
  EXPECT_TRUE(step.find_op("model.decoder.embed_positions.weight/update"));
}

// 37 billion are used for each token: 2 FLOPs each, and the expert's spare capacity and attention.
TEST(NewModels, deepseek_computes_with_its_active_parameters) {
  const Graph forward =
      build_forward(deepseek_models(), "deepseek-v3", {{"capacity", "1"}, {"sequence", "1024"}});
  const double tokens = 1024;
  EXPECT_NEAR(total_flops(forward, Phase::kForward) / (2 * 37.0e9 * tokens), 1, 0.05);
}

TEST(NewModels, experts_in_parts_have_as_many_parameters) {
  const OptionValues alone{{"layers", "2"}, {"expert_parts", "32"}};
  EXPECT_EQ(parameters_of(gpt_oss_models(), "gpt-oss-20b", alone),
            parameters_of(gpt_oss_models(), "gpt-oss-20b", {{"layers", "2"}}));
}

TEST(NewModels, train_in_half_precision) {
  expect_half_precision(build(whisper_models(), "whisper-tiny", {{"batch", "1"}}));
  expect_half_precision(build(deepseek_models(), "deepseek-v3", {{"layers", "4"}}));
  expect_half_precision(build(gpt_oss_models(), "gpt-oss-20b", {{"layers", "2"}}));
  expect_half_precision(build(sdxl_models(), "sdxl-unet", {{"deep", "1"}}));
}

}  // namespace
}  // namespace emplace::zoo
