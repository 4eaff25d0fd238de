#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placer/placer.h"

#include "placers/all.h"

#include "support/timed_graph.h"

namespace emplace {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Layout {
  std::shared_ptr<const Problem> problem;
  PlaceResult result;

  DeviceId of(const std::string& op) const {
    return result.placement[*problem->graph().find_op(op)];
  }
};

Layout place_expert(const std::shared_ptr<const Graph>& graph, const ClusterSpec& cluster,
                    const std::string& spec = "expert") {
  Layout layout{.problem = compile_timed(graph, cluster), .result = {}};
  PlaceContext context(layout.problem);
  const auto placer = all_placers().make(MethodSpec::parse(spec));
  layout.result = placer->place(context, Budget{}, Rng(1));
  check_placement(*layout.problem, layout.result.placement);
  return layout;
}

// Layers of equal length; each has a weight, a forward and a backward op, an update.
std::shared_ptr<const Graph> feed_forward(int layers, Bytes weight = 100) {
  TimedGraph graph;
  std::vector<TensorId> weights;
  for (int i = 0; i < layers; ++i) {
    weights.push_back(graph.parameter("fc" + std::to_string(i) + ".weight", weight));
  }
  TensorId x = graph.source("x", "input", 0);
  std::vector<TensorId> activations;
  for (int i = 0; i < layers; ++i) {
    x = graph.op("mm" + std::to_string(i), 10, {x, weights[static_cast<std::size_t>(i)]}, 0);
    activations.push_back(x);
  }
  for (int i = layers; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    x = graph.backward("mm_backward" + std::to_string(i), 20, {x, activations[at], weights[at]});
    graph.update("update" + std::to_string(i), 1, {weights[at], x});
  }
  return graph.build();
}

TEST(Expert, cuts_layers_into_contiguous_balanced_blocks_with_their_backward_pass) {
  const Layout layout = place_expert(feed_forward(8), gpu_cluster(4));
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i);
    EXPECT_EQ(layout.of("mm" + number), i / 2);
    EXPECT_EQ(layout.of("mm_backward" + number), i / 2);
    EXPECT_EQ(layout.of("fc" + number + ".weight"), i / 2);
  }
}

TEST(Expert, gives_a_faster_device_more_layers) {
  ClusterSpec spec = gpu_cluster(2);
  spec.devices[0].slowdown = {3, 0};
  const Layout layout = place_expert(feed_forward(8), spec);
  EXPECT_EQ(layout.of("mm1"), 0);
  EXPECT_EQ(layout.of("mm2"), 1);
}

TEST(Expert, leaves_a_much_slower_device_empty_unless_memory_demands_it) {
  ClusterSpec spec = gpu_cluster(2);
  spec.devices[1].slowdown = {10, 0};
  EXPECT_THAT(place_expert(feed_forward(8), spec).result.placement, Each(0));
  spec.devices[0].memory = 50'000;
  const Layout tight = place_expert(feed_forward(8, 10'000), spec);
  EXPECT_EQ(tight.of("mm0"), 0);
  EXPECT_EQ(tight.of("mm7"), 1);
  EXPECT_THAT(tight.result.notes, IsEmpty());
}

TEST(Expert, says_so_when_no_cut_fits) {
  const Layout layout = place_expert(feed_forward(8), gpu_cluster(2, 150));
  ASSERT_EQ(layout.result.notes.size(), 1U);
  EXPECT_THAT(layout.result.notes[0], HasSubstr("does not fit"));
}

TEST(Expert, honours_restrictions_inside_a_block) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {});
  const TensorId b =
      graph.add({.name = "b", .type = "compute", .inputs = {a}, .devices = {"gpu1"}}, 10);
  const TensorId c = graph.op("c", 10, {b});
  graph.op("d", 10, {c});
  const Layout layout = place_expert(graph.build(), gpu_cluster(2));
  EXPECT_EQ(layout.of("a"), 0);
  EXPECT_EQ(layout.of("b"), 1);
  EXPECT_EQ(layout.of("d"), 1);
}

// Translation in miniature: an encoder and a decoder of `layers` layers over six steps, the first
// encoder layer in both directions, attention and projection behind the decoder.
std::shared_ptr<const Graph> translation(int layers) {
  constexpr int kSteps = 6;
  TimedGraph graph;
  std::vector<std::string> names{"enc_fw", "enc_bw"};
  for (int i = 1; i < layers; ++i) names.push_back("enc." + std::to_string(i - 1));
  for (int i = 0; i < layers; ++i) names.push_back("dec." + std::to_string(i));
  const TensorId embedding = graph.parameter("emb.weight");
  std::vector<TensorId> weights;
  for (const std::string& name : names) weights.push_back(graph.parameter(name + ".weight"));
  const TensorId attention = graph.parameter("att.weight");
  const TensorId projection = graph.parameter("proj.weight");
  const TensorId ids = graph.source("ids", "input");
  std::vector<TensorId> states(names.size(), ids);
  for (int step = 0; step < kSteps; ++step) {
    const std::string at = "@" + std::to_string(step);
    TensorId x = graph.op("emb" + at, 1, {ids, embedding});
    for (std::size_t i = 0; i < names.size(); ++i) {
      x = states[i] = graph.op(names[i] + at, 10, {x, states[i], weights[i]});
    }
    const TensorId attended = graph.op("att" + at, 5, {x, attention});
    graph.op("proj" + at, 5, {attended, projection});
  }
  return graph.build();
}

TEST(Expert, gives_each_recurrent_layer_a_device_with_encoder_and_decoder_side_by_side) {
  const Layout layout = place_expert(translation(4), gpu_cluster(4));
  for (const char* step : {"@0", "@5"}) {
    EXPECT_EQ(layout.of(std::string("enc_fw") + step), 0);
    EXPECT_EQ(layout.of(std::string("enc_bw") + step), 0);
    EXPECT_EQ(layout.of(std::string("emb") + step), 0);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(layout.of("dec." + std::to_string(i) + step), i);
    }
    for (int i = 1; i < 4; ++i) {
      EXPECT_EQ(layout.of("enc." + std::to_string(i - 1) + step), i);
    }
    EXPECT_EQ(layout.of(std::string("att") + step), 3);
    EXPECT_EQ(layout.of(std::string("proj") + step), 3);
  }
}

TEST(Expert, cuts_recurrent_layers_into_blocks_when_devices_are_fewer) {
  const Layout layout = place_expert(translation(4), gpu_cluster(2));
  EXPECT_EQ(layout.of("dec.0@3"), 0);
  EXPECT_EQ(layout.of("enc.0@3"), layout.of("dec.1@3"));
  EXPECT_EQ(layout.of("enc.1@3"), 1);
  EXPECT_EQ(layout.of("proj@3"), 1);
}

TEST(Expert, uses_the_fastest_devices_when_layers_are_fewer) {
  ClusterSpec spec = gpu_cluster(3);
  spec.devices[0].slowdown = {2, 0};
  const Layout layout = place_expert(translation(2), spec);
  EXPECT_EQ(layout.of("dec.0@3"), 1);
  EXPECT_EQ(layout.of("dec.1@3"), 2);
}

TEST(Expert, ignores_recurrence_when_told_to) {
  const Layout layout = place_expert(translation(4), gpu_cluster(4), "expert(recurrent=false)");
  EXPECT_EQ(layout.of("enc_fw@0"), 0);
  EXPECT_EQ(layout.of("dec.3@0"), 3);
  EXPECT_NE(layout.of("dec.0@0"), 0);  // behind the whole encoder
}

}  // namespace
}  // namespace emplace
