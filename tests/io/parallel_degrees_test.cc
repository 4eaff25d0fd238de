// Partitions that are one of the usual ways to train on many devices, as settings of programs.
#include "io/parallel_degrees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "graph/graph_builder.h"

#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;
using DegreesShape = std::vector<std::int64_t>;
using Split = SavedPartition::Split;
using Strategy = std::vector<std::optional<std::string>>;

constexpr std::int64_t kExamples = 8;

// Two numbered layers of two products, and a training step of them, as far as a partition names it;
// what every weight, its gradient and its update have is the same.
class TrainedLayers {
 public:
  struct Cut {
    Split examples = {};
    Split columns = {};  // of the first weight of each layer
    Split rows = {};     // of the second
    Split gradients = {};
    Strategy updates = {};
    Strategy products = {"m"};  // the first of each layer
    Strategy last = {"m"};      // the second
    Strategy backward = {"sum k"};
    bool held = false;
    bool updated = true;
    bool table = false;  // of positions, which products add; and labels
    std::int64_t batch = kExamples;
    std::int64_t labels = 1;        // of each example
    std::string layer = "layers.";  // and its number
    std::string weight = "weight";  // of the first product
  };

  TrainedLayers(std::vector<int> factors, const Cut& cut) : cut_(cut) {
    partition_.factors = std::move(factors);
    int devices = 1;
    for (const int factor : partition_.factors) devices *= factor;
    for (int i = 0; i < devices; ++i) partition_.devices.push_back("gpu" + std::to_string(i));
    TensorId x = add("x", "input", {}, {cut.batch, 16}, cut.examples);
    const TensorId table = cut.table ? add("table", "input", {}, {16, 16}, {}) : x;
    for (int i = 0; i < 2; ++i) {
      const std::string layer = cut.layer + std::to_string(i);
      if (cut.table)
        x = add(layer + ".MatMul", "MatMul", {x, table}, {cut.batch, 16}, cut.examples);
      x = product(layer + ".up", cut.weight, x, 32, 16, cut.columns, cut.products);
      x = product(layer + ".down", "weight", x, 16, 32, cut.rows, cut.last);
    }
    if (cut.table) {
      const TensorId labels =
          add("labels", "input", {}, {cut.batch * cut.labels, 16 / cut.labels}, cut.examples);
      x = add("flat", "Reshape", {x}, {cut.batch * cut.labels, 16 / cut.labels}, cut.examples);
      add("loss", "Sub", {x, labels}, {cut.batch * cut.labels, 16 / cut.labels}, cut.examples);
    }
    for (const auto& [name, weight, shape, from, result] : weights_) {
      const TensorId gradient = add(name + "/grad", "Gemm", {result, from}, shape, cut.gradients,
                                    Phase::kBackward, {{"transA", std::int64_t{1}}});
      partition_.ops[name + "/grad"] = {.type = "Gemm", .strategy = cut.backward};
      if (!cut.updated) continue;
      add(name + "/update", "SgdUpdate", {weight, gradient}, shape, {}, Phase::kUpdate);
      partition_.ops[name + "/update"] = {.type = "SgdUpdate", .strategy = cut.updates};
    }
  }

  std::string megatron() && { return write_megatron_degrees(graph(), partition_, ignore); }
  std::string torchtitan() && { return write_torchtitan_degrees(graph(), partition_, ignore); }
  nlohmann::json deepspeed(int micro_batches = 0) && {
    return nlohmann::json::parse(
        write_deepspeed_degrees(graph(), partition_, micro_batches, ignore));
  }

 private:
  struct Weight {
    std::string name;
    TensorId tensor;
    DegreesShape shape;
    TensorId from, result;
  };

  static void ignore(const std::string&) {}
  Graph graph() { return std::move(builder_).build(); }

  TensorId add(const std::string& name, const std::string& type, std::vector<TensorId> inputs,
               const DegreesShape& shape, const Split& split, Phase phase = Phase::kForward,
               Attributes attributes = {}) {
    partition_.tensors[name] = {.shape = shape, .split = split};
    if (split.empty()) partition_.tensors[name].split.resize(partition_.factors.size());
    return builder_.add({.name = name,
                         .type = type,
                         .inputs = std::move(inputs),
                         .phase = phase,
                         .attributes = std::move(attributes)},
                        {{.shape = shape, .dtype = DType::kFloat32}})[0];
  }

  TensorId product(const std::string& name, const std::string& weight_name, TensorId from,
                   std::int64_t out, std::int64_t in, const Split& split,
                   const Strategy& strategy) {
    const DegreesShape shape{out, in};
    const std::string path = name + "." + weight_name;
    const TensorId weight = add(path, "parameter", {}, shape, split);
    partition_.tensors[path].held = cut_.held;
    partition_.ops[name] = {.type = "Gemm", .strategy = strategy};
    const TensorId result = add(name, "Gemm", {from, weight}, {cut_.batch, out}, cut_.examples,
                                Phase::kForward, {{"transB", std::int64_t{1}}});
    weights_.push_back({path, weight, shape, from, result});
    return result;
  }

  Cut cut_;
  GraphBuilder builder_{"trained"};
  SavedPartition partition_;
  std::vector<Weight> weights_;
};

const Split kWhole{{}};
const Split kFirst{0};

TEST(ParallelDegrees, examples_alone_are_data_parallelism) {
  const TrainedLayers::Cut cut{.examples = kFirst, .updates = {{}}};
  EXPECT_EQ(TrainedLayers({4}, cut).megatron(), "--micro-batch-size 2 --global-batch-size 8\n");
  EXPECT_EQ(TrainedLayers({4}, cut).torchtitan(),
            "[parallelism]\ndata_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\n"
            "tensor_parallel_degree = 1\n\n[training]\nlocal_batch_size = 2\n"
            "global_batch_size = 8\n");
  EXPECT_EQ(TrainedLayers({4}, cut).deepspeed(2),
            nlohmann::json::parse(R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
                "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 0}})"));
  EXPECT_THAT(error_text([&] { TrainedLayers({4}, cut).deepspeed(3); }),
              HasSubstr("3 micro-batches do not divide the 2 examples"));
}

TEST(ParallelDegrees, what_is_in_parts_says_the_stage_of_zero) {
  const auto stage = [](const TrainedLayers::Cut& cut) {
    return TrainedLayers({2}, cut).deepspeed()["zero_optimization"]["stage"];
  };
  TrainedLayers::Cut cut{.examples = kFirst, .updates = {"d0"}};
  EXPECT_EQ(stage(cut), 1);
  EXPECT_EQ(TrainedLayers({2}, cut).megatron(),
            "--use-distributed-optimizer --micro-batch-size 4 --global-batch-size 8\n");
  EXPECT_THAT(error_text([&] { TrainedLayers({2}, cut).torchtitan(); }), HasSubstr("or none"));
  cut.gradients = kFirst;
  EXPECT_EQ(stage(cut), 2);
  EXPECT_THAT(TrainedLayers({2}, cut).torchtitan(),
              HasSubstr("data_parallel_shard_degree = 2\ntensor_parallel_degree = 1\n"
                        "fsdp_reshard_after_forward = \"never\""));
  cut.columns = cut.rows = kFirst;
  EXPECT_EQ(stage(cut), 3);
  EXPECT_THAT(TrainedLayers({2}, cut).torchtitan(), HasSubstr("= \"always\""));
  EXPECT_THAT(TrainedLayers({2}, cut).megatron(),
              HasSubstr("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params "
                        "--use-distributed-optimizer --no-gradient-accumulation-fusion"));
  cut.held = true;
  EXPECT_EQ(stage(cut), 2);
  cut.rows = kWhole;
  EXPECT_THAT(error_text([&] { stage(cut); }), HasSubstr("2 of 4 weights in parts"));
}

// Examples among machines, layers within them.
TEST(ParallelDegrees, levels_may_divide_examples_and_layers) {
  TrainedLayers::Cut cut{
      .examples = {0, {}}, .columns = {{}, 0}, .rows = {{}, 1}, .updates = {"d0", "d0"}};
  EXPECT_EQ(TrainedLayers({2, 4}, cut).megatron(),
            "--tensor-model-parallel-size 4 --use-distributed-optimizer --micro-batch-size 4 "
            "--global-batch-size 8\n");
  const auto json = TrainedLayers({2, 4}, cut).deepspeed();
  EXPECT_EQ(json["tensor_parallel"]["autotp_size"], 4);
  EXPECT_EQ(json["train_micro_batch_size_per_gpu"], 4);
  // Columns after columns need an exchange that Megatron-LM's layers do not have.
  cut.rows = {{}, 0};
  EXPECT_THAT(error_text([&] {
                TrainedLayers({2, 4}, cut).megatron();
              }),
              HasSubstr("expected columns whose outputs rows take as they are"));
}

// A model without numbers, and weights that are no linear layer's.
TEST(ParallelDegrees, tensor_parallelism_is_of_the_linear_layers_of_numbered_blocks) {
  const TrainedLayers::Cut columns{
      .examples = kWhole, .columns = kFirst, .rows = kFirst, .updates = {{}}, .layer = "layer"};
  EXPECT_THAT(error_text([&] { TrainedLayers({2}, columns).megatron(); }),
              HasSubstr("level 0 divides neither examples nor numbered layers"));
  const TrainedLayers::Cut other{.examples = kWhole,
                                 .columns = kFirst,
                                 .rows = {1},
                                 .updates = {{}},
                                 .weight = "in_proj_weight"};
  EXPECT_THAT(error_text([&] { TrainedLayers({2}, other).megatron(); }), HasSubstr("level 0"));
  const TrainedLayers::Cut none{.examples = kWhole, .updates = {{}}};
  EXPECT_THAT(error_text([&] { TrainedLayers({2}, none).megatron(); }), HasSubstr("level 0: "));
}

// Where everybody has its examples of what comes out, and not of what was computed.
TEST(ParallelDegrees, products_are_divided_by_examples_not_their_results_alone) {
  TrainedLayers::Cut cut{.examples = kFirst,
                         .columns = kFirst,
                         .rows = kFirst,
                         .updates = {"d0"},
                         .products = {"n"},
                         .last = {"n"}};
  for (const Strategy& products : {Strategy{"n"}, Strategy{"sum k"}, Strategy{{}}}) {
    cut.products = products;
    EXPECT_THAT(error_text([&] { TrainedLayers({2}, cut).megatron(); }),
                HasSubstr("level 0 divides the examples of the inputs, but not those of op "
                          "'layers.0.up'"));
  }
  cut.products = cut.last = {"m"};
  cut.backward = {"m"};
  EXPECT_THAT(error_text([&] { TrainedLayers({2}, cut).megatron(); }),
              HasSubstr("'layers.0.up.weight/grad'"));
}

TEST(ParallelDegrees, one_example_can_be_divided_by_layers_alone) {
  TrainedLayers::Cut cut{.examples = kWhole,
                         .columns = kFirst,
                         .rows = {1},
                         .updates = {{}},
                         .products = {"n"},
                         .last = {"sum k"},
                         .batch = 1};
  EXPECT_EQ(TrainedLayers({2}, cut).megatron(),
            "--tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 1\n");
  cut.columns = cut.rows = kWhole;
  EXPECT_THAT(error_text([&] { TrainedLayers({2}, cut).megatron(); }), HasSubstr("level 0"));
}

// Tables of positions are inputs that begin with something else.
TEST(ParallelDegrees, labels_say_how_many_examples_there_are) {
  const TrainedLayers::Cut cut{.examples = kFirst, .updates = {{}}, .table = true};
  EXPECT_THAT(TrainedLayers({2}, cut).megatron(), HasSubstr("--global-batch-size 8"));
}

// Words that lie one after the other, as some captures have their labels, are no examples.
TEST(ParallelDegrees, labels_are_as_many_as_examples) {
  const TrainedLayers::Cut cut{.examples = kFirst, .updates = {{}}, .table = true, .labels = 16};
  EXPECT_THAT(error_text([&] { TrainedLayers({2}, cut).megatron(); }),
              HasSubstr("inputs begin with 8 and with"));
}

TEST(ParallelDegrees, a_step_without_updates_says_nothing_of_the_optimizer) {
  const TrainedLayers::Cut cut{.examples = kFirst, .updated = false};
  EXPECT_THAT(error_text([&] { TrainedLayers({2}, cut).megatron(); }),
              HasSubstr("expected updates of weights"));
}

TEST(ParallelDegrees, examples_are_shared_out_evenly) {
  const TrainedLayers::Cut cut{.examples = kFirst, .updates = {{}}};
  EXPECT_THAT(error_text([&] { TrainedLayers({3}, cut).megatron(); }),
              HasSubstr("8 examples are divided into 3 parts"));
}

}  // namespace
}  // namespace emplace
