// What a partition becomes for runtimes that divide tensors, and ONNX's annotations of devices.
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/onnx_check.h"
#include "io/onnx_devices.h"
#include "io/onnx_models.h"
#include "io/partition_file.h"
#include "io/sharding_json.h"
#include "io/tp_plan.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using Split = SavedPartition::Split;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Two linear layers; the first is transposed, as PyTorch stores it.
void add_linear_layers(OnnxModelMaker& model) {
  model.input("x", {8, 4});
  model.weights("layers.0.up.weight", {16, 4});
  model.weights("layers.0.down.weight", {16, 4});
  set_ints(model.node("Transpose", {"layers.0.up.weight"}, {"up"}, "turn"), "perm", {1, 0});
  model.node("MatMul", {"x", "up"}, {"wide"}, "wide");
  model.node("MatMul", {"wide", "layers.0.down.weight"}, {"y"}, "narrow");
  set_type(*model.graph.add_output(), "y", {8, 4});
}

// Two levels of two: the first cuts the layers in the middle, the second the batch.
constexpr const char* kPartition = R"({"format": "emplace.partition/1", "graph": "test",
 "cluster": "4xp100", "method": "by hand", "factors": [2, 2],
 "devices": ["gpu0", "gpu1", "gpu2", "gpu3"],
 "tensors": {
  "x": {"shape": [8, 4], "split": [null, 0]},
  "layers.0.up.weight": {"shape": [16, 4], "split": [0, null]},
  "layers.0.down.weight": {"shape": [16, 4], "split": [0, null]},
  "wide": {"shape": [8, 16], "split": [1, 0]},
  "narrow": {"shape": [8, 4], "split": [null, 0]}},
 "ops": {"wide": {"type": "MatMul", "strategy": ["n", "m"]},
         "narrow": {"type": "MatMul", "strategy": ["sum k", "m"]}}})";

void ignore_note(const std::string&) {}

TEST(PartitionFile, is_read_by_names) {
  const SavedPartition partition = read_partition_json(kPartition);
  EXPECT_EQ(partition.cluster, "4xp100");
  EXPECT_THAT(partition.factors, ElementsAre(2, 2));
  ASSERT_NE(partition.find_tensor("wide"), nullptr);
  EXPECT_THAT(partition.find_tensor("wide")->split, ElementsAre(1, 0));
  EXPECT_EQ(partition.find_op("narrow")->strategy[0], "sum k");
  EXPECT_EQ(partition.find_tensor("none"), nullptr);
  EXPECT_TRUE(is_partition_json(kPartition));
  EXPECT_FALSE(is_partition_json(R"({"format": "emplace.placement/1"})"));
}

TEST(PartitionFile, says_what_is_wrong) {
  const auto complaint = [](const std::string& from, const std::string& to) {
    std::string text = kPartition;
    text.replace(text.find(from), from.size(), to);
    return error_text([&] { read_partition_json(text); });
  };
  EXPECT_THAT(complaint("[1, 0]}", "[1]}"), HasSubstr("tensor 'wide': split: expected 2 entries"));
  EXPECT_THAT(complaint("[1, 0]}", "[2, 0]}"),
              HasSubstr("tensor 'wide': split: 2 is no dimension of a tensor of rank 2"));
  EXPECT_THAT(complaint(", \"split\": [1, 0]", ""),
              HasSubstr("tensor 'wide': split: expected 2 entries"));
  EXPECT_THAT(complaint(", \"strategy\": [\"n\", \"m\"]", ""),
              HasSubstr("op 'wide': strategy: expected 2 entries"));
  EXPECT_THAT(complaint("[1, 0]}", "[4294967296, 0]}"), HasSubstr("4294967296 is no dimension"));
  EXPECT_THAT(complaint("\"factors\": [2, 2]", "\"factors\": [2], \"factors\": [2]"),
              HasSubstr("factors: is there twice"));
  EXPECT_THAT(complaint(", \"gpu3\"", ""), HasSubstr("devices: expected 4"));
  EXPECT_THAT(complaint("\"x\": {\"shape\": [8", "\"x\": {\"shape\": [4, 4611686018427387904"),
              HasSubstr("tensor 'x': shape: [4, 4611686018427387904, 4] is too large; expected "
                        "1152921504606846976 elements at most"));
  EXPECT_THAT(complaint("\"x\": {\"shape\": [8", "\"x\": {\"shape\": [0, 1152921504606846976"),
              HasSubstr("too large"));
  EXPECT_THAT(complaint("\"x\": {\"shape\": [8", "\"x\": {\"shape\": [-8"),
              HasSubstr("tensor 'x': shape: dimension -8 is negative"));
}

TEST(PartitionFile, of_another_model_is_refused) {
  OnnxModelMaker model;
  add_linear_layers(model);
  const Graph graph = model.read();
  const auto complaint = [&](const std::string& from, const std::string& to) {
    std::string text = kPartition;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
    return error_text([&] {
      SavedPartition partition = read_partition_json(text);
      fit_partition(partition, graph);
    });
  };
  EXPECT_EQ(complaint("by hand", "by chance"), "");
  EXPECT_EQ(complaint("\"x\": {\"shape\": [8", "\"x\": {\"shape\": [16"),
            "tensor 'x': is [16, 4] in the partition, and [8, 4] in the model");
  EXPECT_EQ(complaint("\"graph\": \"test\"", "\"graph\": \"other\""), "");
  EXPECT_EQ(complaint("layers.0", "layers.1"),
            "the partition says nothing of parameter 'layers.0.up.weight'");
}

// Plans tell the gates of an LSTM apart, which models have in one dimension.
TEST(PartitionFile, parts_that_lie_side_by_side_are_put_together) {
  OnnxModelMaker model;
  add_linear_layers(model);
  const Graph graph = model.read();
  const std::string name = "layers.0.up.weight";
  const auto fitted = [&](std::vector<std::int64_t> shape, SavedPartition::Split split) {
    SavedPartition partition = read_partition_json(kPartition);
    partition.tensors[name] = {.shape = std::move(shape), .split = std::move(split)};
    const std::vector<std::string> whole = fit_partition(partition, graph).sources;
    return std::pair(partition.tensors[name].split, whole);
  };
  const auto shape = graph.shape(graph.outputs(*graph.find_op(name))[0]);
  const std::int64_t rows = shape[0];
  const std::int64_t columns = shape[1];
  const std::vector<std::string> none;
  EXPECT_EQ(fitted({2, rows / 2, columns}, {0, 2}), std::pair(Split{0, 1}, none));
  EXPECT_EQ(fitted({2, rows / 2, columns}, {1, {}}),
            std::pair(Split{{}, {}}, std::vector<std::string>{name}));
  EXPECT_EQ(fitted({rows, 2, columns / 2}, {0, 1}), std::pair(Split{0, 1}, none));
  EXPECT_EQ(fitted({2, rows / 2, columns}, {0, 0}),
            std::pair(Split{0, {}}, std::vector<std::string>{name}));
  EXPECT_EQ(fitted({4, rows / 4, columns}, {0, 0}), std::pair(Split{0, 0}, none));
  EXPECT_THAT(error_text([&] { fitted({3, rows, columns}, {0, {}}); }), HasSubstr("is [3, "));
}

// Of three parts one device has two: there is no such cut of the one matrix.
TEST(PartitionFile, parts_that_are_shared_out_unevenly_stay_whole) {
  OnnxModelMaker model;
  model.input("x", {8, 4});
  model.weights("qkv.weight", {4, 12});
  model.node("MatMul", {"x", "qkv.weight"}, {"qkv"}, "qkv");
  set_int(model.node("Softmax", {"qkv"}, {"y"}, "y"), "axis", -1);
  set_type(*model.graph.add_output(), "y", {8, 12});
  SavedPartition partition{.factors = {2, 3}};
  partition.tensors["x"] = {.shape = {8, 4}, .split = {0, {}}};
  partition.tensors["qkv.weight"] = {.shape = {4, 3, 4}, .split = {1, 1}};
  partition.tensors["qkv"] = {.shape = {8, 3, 4}, .split = {1, {}}};
  partition.tensors["y"] = {.shape = {8, 2, 2, 3}, .split = {1, {}}};
  const LostCuts lost = fit_partition(partition, model.read());
  EXPECT_THAT(lost.sources, ElementsAre("qkv.weight"));
  EXPECT_THAT(lost.inside, ElementsAre("qkv", "y"));
  EXPECT_EQ(partition.tensors["qkv.weight"].split, (Split{{}, 1}));
  EXPECT_EQ(partition.tensors["qkv"].split, (Split{{}, {}}));
  EXPECT_FALSE(partition.tensors.contains("y"));
}

TEST(PartitionExports, weights_are_cut_by_dimension_of_the_mesh) {
  OnnxModelMaker model;
  add_linear_layers(model);
  const SavedPartition partition = read_partition_json(kPartition);
  const Json plan = Json::parse(write_dtensor_plan(model.read(), partition, ignore_note));
  EXPECT_EQ(plan["mesh"]["shape"], Json({2, 2}));
  EXPECT_EQ(plan["parameters"]["layers.0.up.weight"]["placements"],
            Json::parse(R"([{"shard": 0}, "replicate"])"));
  EXPECT_EQ(plan["inputs"]["x"]["placements"], Json::parse(R"(["replicate", {"shard": 0}])"));
  const Json specs = Json::parse(write_partition_specs(model.read(), partition, ignore_note));
  EXPECT_EQ(specs["specs"]["layers.0.up.weight"], Json::parse(R"([["level0"], null])"));
  EXPECT_EQ(specs["specs"]["x"], Json::parse(R"([["level1"], null])"));
}

TEST(PartitionExports, parts_that_jax_refuses_are_named) {
  OnnxModelMaker model;
  add_linear_layers(model);
  const Graph graph = model.read();
  std::string uneven = kPartition;
  uneven.replace(uneven.find("\"shape\": [16, 4]"), 16, "\"shape\": [17, 4]");
  std::vector<std::string> notes;
  const auto keep = [&](const std::string& note) { notes.push_back(note); };
  write_partition_specs(graph, read_partition_json(kPartition), keep);
  EXPECT_EQ(notes.size(), 1U);
  write_partition_specs(graph, read_partition_json(uneven), keep);
  EXPECT_EQ(notes.back(),
            "JAX takes no parts of unequal size, as those of 'layers.0.up.weight' (17 in 2)");
}

TEST(PartitionExports, linear_layers_are_cut_by_columns_or_rows) {
  OnnxModelMaker model;
  add_linear_layers(model);
  std::vector<std::string> said;
  const auto listen = [&](const std::string& text) { said.push_back(text); };
  const Json plan =
      Json::parse(write_tp_plan(model.read(), read_partition_json(kPartition), listen));
  // Of PyTorch's weight the outputs are the rows; of the other, as MatMul takes it, the inputs are.
  EXPECT_EQ(plan, Json({{"layers.*.up", "colwise"}, {"layers.*.down", "rowwise"}}));
  EXPECT_THAT(said, ::testing::Each(::testing::Not(HasSubstr("transformers 5"))));
}

// up and gate, the products of which meet, feed down; a second up reads down's result, and nothing
// but a normalisation reads what comes out of it.
TEST(PartitionExports, layers_whose_readers_need_all_of_it_give_it_whole) {
  OnnxModelMaker model;
  model.input("x", {8, 4});
  SavedPartition partition{.factors = {2}};
  const auto layer = [&](const std::string& name, const std::string& from, std::int64_t in,
                         std::int64_t out, int cut) {
    model.weights(name + ".weight", {in, out});
    model.node("MatMul", {from, name + ".weight"}, {name}, name);
    partition.tensors[name + ".weight"] = {.shape = {in, out}, .split = {cut}};
  };
  layer("0.up", "x", 4, 16, 1);
  layer("0.gate", "x", 4, 16, 1);
  model.node("Mul", {"0.up", "0.gate"}, {"both"}, "both");
  layer("0.down", "both", 16, 4, 0);
  layer("1.wide", "0.down", 4, 16, 1);
  model.weights("1.norm.weight", {16});
  model.node("Mul", {"1.wide", "1.norm.weight"}, {"normed"}, "normed");
  layer("1.other", "normed", 16, 4, 0);
  set_type(*model.graph.add_output(), "1.other", {8, 4});
  std::vector<std::string> said;
  const auto listen = [&](const std::string& text) { said.push_back(text); };
  EXPECT_EQ(Json::parse(write_tp_plan(model.read(), partition, listen)),
            Json({{"*.up", "colwise"},
                  {"*.gate", "colwise"},
                  {"*.down", "rowwise"},
                  {"*.wide", "colwise_gather_output"},
                  {"*.other", "rowwise_split_input"}}));
  EXPECT_THAT(said, ::testing::Contains(HasSubstr("are names of transformers 5")));
  // Columns that columns read.
  partition.tensors["0.down.weight"].split = {1};
  EXPECT_EQ(Json::parse(write_tp_plan(model.read(), partition, ignore_note))["*.up"],
            "colwise_gather_output");
}

// A layer whose outputs are cut, what is done to them, and one whose inputs are cut.
class BetweenColumnsAndRows : public ::testing::Test {
 protected:
  // Layer "0.in", which gives "wide" [2, 4, width]; `between` makes "ready" of it, as wide as
  // layer "0.out" takes it.
  template <class Between>
  Json styles(std::int64_t width, std::int64_t ready, const Between& between, int devices = 2) {
    OnnxModelMaker model;
    model.input("x", {2, 4, 16});
    model.weights("0.in.weight", {16, width});
    model.weights("0.out.weight", {ready, 16});
    model.node("MatMul", {"x", "0.in.weight"}, {"wide"}, "in");
    between(model);
    model.node("MatMul", {"ready", "0.out.weight"}, {"y"}, "out");
    set_type(*model.graph.add_output(), "y", {2, 4, 16});
    SavedPartition partition{.factors = {devices}};
    partition.tensors["0.in.weight"] = {.shape = {16, width}, .split = {1}};
    partition.tensors["0.out.weight"] = {.shape = {ready, 16}, .split = {0}};
    return Json::parse(write_tp_plan(model.read(), partition, ignore_note));
  }

  static void reshape(OnnxModelMaker& model, const std::string& from, const std::string& to,
                      const std::vector<std::int64_t>& shape) {
    model.integers(to + ".shape", shape);
    model.node("Reshape", {from, to + ".shape"}, {to}, "reshape " + to);
  }

  static void split(OnnxModelMaker& model, const std::string& from,
                    const std::vector<std::string>& to, int axis, std::int64_t size) {
    model.integers(from + ".split", std::vector<std::int64_t>(to.size(), size));
    set_int(model.node("Split", {from, from + ".split"}, to, "split " + from), "axis", axis);
  }

  const Json cut_ = {{"*.in", "colwise"}, {"*.out", "rowwise"}};
  const Json whole_ = {{"*.in", "colwise_gather_output"}, {"*.out", "rowwise_split_input"}};
};

// A device has half of what lies in the dimension, not half of each part.
TEST_F(BetweenColumnsAndRows, gates_that_are_told_apart_need_all_of_it) {
  EXPECT_EQ(styles(64, 32,
                   [](OnnxModelMaker& model) {
                     split(model, "wide", {"gate", "up"}, -1, 32);
                     model.node("Mul", {"gate", "up"}, {"ready"}, "both");
                   }),
            whole_);
  EXPECT_EQ(styles(64, 32,
                   [](OnnxModelMaker& model) {
                     model.integers("begin", {0});
                     model.integers("end", {32});
                     model.integers("axis", {2});
                     model.node("Slice", {"wide", "begin", "end", "axis"}, {"ready"}, "part");
                   }),
            whole_);
  EXPECT_EQ(styles(64, 64,
                   [](OnnxModelMaker& model) {
                     split(model, "wide", {"one", "two"}, 1, 2);
                     set_int(model.node("Concat", {"two", "one"}, {"ready"}, "turn"), "axis", 1);
                   }),
            cut_);
}

TEST_F(BetweenColumnsAndRows, so_do_queries_keys_and_values) {
  // By halves of attention: [2, 4, 3 * 4 * 8] to heads [2, 4, 4, 8] and back.
  const auto attend = [](OnnxModelMaker& model) {
    model.node("Add", {"q", "k"}, {"qk"}, "qk");
    model.node("Add", {"qk", "v"}, {"qkv"}, "qkv");
  };
  EXPECT_EQ(styles(96, 32,
                   [&](OnnxModelMaker& model) {
                     split(model, "wide", {"q", "k", "v"}, 2, 32);
                     attend(model);
                     model.node("Relu", {"qkv"}, {"ready"}, "ready");
                   }),
            whole_);
  // Queries first, then keys, then values, told apart in a dimension of their own.
  const auto by_kind = [&](OnnxModelMaker& model) {
    reshape(model, "wide", "kinds", {2, 4, 3, 4, 8});
    for (int i = 0; i < 3; ++i) {
      const std::string name(1, "qkv"[i]);
      model.integer(name + ".kind", i);
      set_int(model.node("Gather", {"kinds", name + ".kind"}, {name}, "take " + name), "axis", 2);
    }
    attend(model);
    reshape(model, "qkv", "ready", {2, 4, 32});
  };
  EXPECT_EQ(styles(96, 32, by_kind), whole_);
  EXPECT_EQ(styles(96, 32, by_kind, 3), whole_);
  // Of each head its query, key and value: heads stay together.
  EXPECT_EQ(styles(96, 32,
                   [&](OnnxModelMaker& model) {
                     reshape(model, "wide", "heads", {2, 4, 4, 24});
                     split(model, "heads", {"q", "k", "v"}, 3, 8);
                     attend(model);
                     reshape(model, "qkv", "ready", {2, 4, 32});
                   }),
            cut_);
}

TEST_F(BetweenColumnsAndRows, heads_are_followed_through_attention) {
  const auto attention = [](OnnxModelMaker& model) {
    reshape(model, "wide", "heads", {2, 4, 4, 8});
    set_ints(model.node("Transpose", {"heads"}, {"q"}, "turn"), "perm", {0, 2, 1, 3});
    split(model, "q", {"left", "right"}, 3, 4);
    set_int(model.node("Concat", {"right", "left"}, {"turned"}, "rotate"), "axis", -1);
    reshape(model, "turned", "flat", {8, 4, 8});
    set_ints(model.node("Transpose", {"flat"}, {"k"}, "turn k"), "perm", {0, 2, 1});
    model.node("MatMul", {"flat", "k"}, {"scores"}, "scores");
    set_int(model.node("Softmax", {"scores"}, {"weights"}, "weights"), "axis", -1);
    model.node("MatMul", {"weights", "flat"}, {"found"}, "found");
    reshape(model, "found", "each", {2, 4, 4, 8});
    set_ints(model.node("Transpose", {"each"}, {"back"}, "turn back"), "perm", {0, 2, 1, 3});
    reshape(model, "back", "ready", {2, 4, 32});
  };
  EXPECT_EQ(styles(32, 32, attention), cut_);
  // Three devices do not have as many heads each.
  EXPECT_EQ(styles(32, 32, attention, 3), whole_);
}

TEST_F(BetweenColumnsAndRows, what_adds_up_or_turns_the_dimension_needs_all_of_it) {
  const auto one = [&](const std::string& type, std::int64_t axis) {
    return styles(64, 64, [&](OnnxModelMaker& model) {
      set_int(model.node(type, {"wide"}, {"ready"}, "one"), "axis", axis);
    });
  };
  EXPECT_EQ(one("Softmax", -1), whole_);
  EXPECT_EQ(one("Softmax", 1), cut_);
  EXPECT_EQ(
      styles(16, 4,
             [](OnnxModelMaker& model) {
               set_ints(model.node("Transpose", {"wide"}, {"turned"}, "turn"), "perm", {0, 2, 1});
               model.node("Relu", {"turned"}, {"ready"}, "ready");
             }),
      whole_);
}

TEST(PartitionExports, a_table_that_is_embedding_and_head_stays_whole) {
  OnnxModelMaker model;
  model.input("x", {8, 4});
  model.weights("table.weight", {4, 6});
  model.weights("up.weight", {6, 4});
  model.node("MatMul", {"x", "table.weight"}, {"wide"}, "wide");
  model.node("MatMul", {"wide", "up.weight"}, {"narrow"}, "narrow");
  model.node("MatMul", {"narrow", "table.weight"}, {"y"}, "again");
  set_type(*model.graph.add_output(), "y", {8, 6});
  SavedPartition partition{.factors = {2}};
  partition.tensors["table.weight"] = {.shape = {4, 6}, .split = {1}};
  partition.tensors["up.weight"] = {.shape = {6, 4}, .split = {1}};
  std::vector<std::string> said;
  const auto listen = [&](const std::string& text) { said.push_back(text); };
  EXPECT_EQ(Json::parse(write_tp_plan(model.read(), partition, listen)),
            Json({{"up", "colwise_gather_output"}}));
  EXPECT_THAT(said, ::testing::Contains(HasSubstr("left whole: 'table.weight'")));
}

OnnxDeviceNotes notes_of(const std::string& bytes) {
  return read_onnx_devices({.bytes = bytes}).value();
}

TEST(OnnxDevices, placement_is_read_back) {
  OnnxModelMaker model;
  add_linear_layers(model);
  const PlacedOnnx placed{
      .source = {.bytes = model.bytes()},
      .graph = "test",
      .devices = {"gpu0", "gpu1"},
      .device_of = [](std::string_view op) { return DeviceId{op == "narrow" ? 1U : 0U}; }};
  const std::string bytes = write_onnx_devices(placed, "two", {0, 1});
  const OnnxDeviceNotes notes = notes_of(bytes);
  EXPECT_EQ(notes.configuration, "two");
  EXPECT_THAT(notes.devices, ElementsAre("gpu0", "gpu1"));
  ASSERT_EQ(notes.ops.size(), 3U);
  EXPECT_THAT(notes.ops.at("wide").devices, ElementsAre(0));
  EXPECT_THAT(notes.ops.at("narrow").devices, ElementsAre(1));
  EXPECT_EQ(notes.ops.at("narrow").stage, 1);
  EXPECT_FALSE(notes.ops.at("narrow").cut());
  onnx::ModelProto proto = parse_onnx(bytes);
  EXPECT_EQ(proto.ir_version(), 11);
  // All else is as it was.
  proto.DiscardUnknownFields();
  proto.set_ir_version(8);
  EXPECT_EQ(proto.SerializeAsString(), model.bytes());
  // Written again, the new word replaces the old.
  const PlacedOnnx again{.source = {.bytes = bytes},
                         .graph = "test",
                         .devices = {"gpu0", "gpu1"},
                         .device_of = [](std::string_view) { return DeviceId{1}; }};
  EXPECT_THAT(notes_of(write_onnx_devices(again, "two", {})).ops.at("wide").devices,
              ElementsAre(1));
}

TEST(OnnxDevices, parts_of_a_partition_are_said_row_by_row) {
  OnnxModelMaker model;
  add_linear_layers(model);
  const CutOnnx cut = write_onnx_devices({.bytes = model.bytes()}, read_partition_json(kPartition));
  EXPECT_EQ(cut.nodes, 3U);
  const OnnxDeviceNotes notes = notes_of(cut.bytes);
  EXPECT_TRUE(notes.ops.at("wide").cut());
  // wide is cut by columns on the first level and by rows on the second: part (row, column) is with
  // worker 2 * column + row.
  EXPECT_THAT(notes.ops.at("wide").devices, ElementsAre(0, 2, 1, 3));
  // y is cut by rows alone: workers 0 and 2 have the first half, 1 and 3 the second.
  EXPECT_THAT(notes.ops.at("narrow").devices, ElementsAre(0, 2, 1, 3));
}

TEST(OnnxDevices, a_model_without_them_says_nothing) {
  OnnxModelMaker model;
  add_linear_layers(model);
  EXPECT_FALSE(read_onnx_devices({.bytes = model.bytes()}).has_value());
  auto& fields = *model.model.GetReflection()->MutableUnknownFields(&model.model);
  fields.AddLengthDelimited(26, "\x0f");
  EXPECT_THAT(error_text([&] { read_onnx_devices({.bytes = model.bytes()}); }),
              HasSubstr("is not a valid message"));
}

}  // namespace
}  // namespace emplace
