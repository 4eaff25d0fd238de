#include "zoo/image_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(WaveNet, step_is_like_the_captured_one) {
  const Graph step = build(wavenet_models(), "wavenet");
  expect_like_capture(step, "wavenet-b8");
  // The capture also holds the last layer's 1 x 1 convolution to a next layer, without using it.
  EXPECT_EQ(count_parameters(step) + 256 * 256 + 256, figures_of("wavenet-b8").parameters);
}

TEST(WaveNet, dilation_doubles_within_a_cycle) {
  const Graph graph =
      build(wavenet_models(), "wavenet",
            {{"training", "false"}, {"layers", "6"}, {"cycle", "4"}, {"sequence", "64"}});
  const auto dilation = [&](int layer) -> std::int64_t {
    const auto op = graph.find_op("layer." + std::to_string(layer) + ".dilated.Conv");
    EXPECT_TRUE(op.has_value()) << layer;
    const auto dilations = graph.attributes(*op).integers("dilations");
    return dilations.empty() ? 1 : dilations[0];
  };
  const std::vector<std::int64_t> expected{1, 2, 4, 8, 1, 2};
  for (int layer = 0; layer < 6; ++layer) {
    EXPECT_EQ(dilation(layer), expected[static_cast<std::size_t>(layer)]);
  }
}

TEST(WaveNet, keeps_the_length_and_sees_no_later_sample) {
  const Graph graph =
      build(wavenet_models(), "wavenet", {{"training", "false"}, {"sequence", "100"}});
  int pads = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.type(op) == "Conv") {
      EXPECT_EQ(graph.shape(graph.outputs(op)[0])[2], 100);
      for (const std::int64_t pad : graph.attributes(op).integers("pads")) EXPECT_EQ(pad, 0);
    }
    if (graph.type(op) != "Pad") continue;
    ++pads;
    const OpId amounts = graph.producer(graph.inputs(op)[1]);
    EXPECT_EQ(graph.attributes(amounts).integers("value")[5], 0) << graph.op_name(op);
  }
  EXPECT_EQ(pads, 40);
}

TEST(WaveNet, trains_in_half_precision) {
  expect_half_precision(build(wavenet_models(), "wavenet", {{"dtype", "float16"}}));
}

TEST(WaveNet, numbers_out_of_range_are_refused) {
  EXPECT_EQ(error_of(wavenet_models(), "wavenet", {{"layers", "0"}}),
            "option 'layers': '0' is not a whole number from 1 to 1000");
}

}  // namespace
}  // namespace emplace::zoo
