// What ops are recognised as, and what they ask of a device, in PyTorch's words and in ONNX's.
#include "cost/op_work.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace emplace {
namespace {

using Shape = std::vector<std::int64_t>;

void expect_class(OpClass expected, const std::vector<std::string>& types) {
  for (const std::string& type : types) {
    EXPECT_EQ(op_class_name(classify(type, Phase::kForward).op_class), op_class_name(expected))
        << type;
  }
}

TEST(OpClass, knows_the_names_of_pytorch_and_onnx) {
  expect_class(OpClass::kMatMul, {"mm", "addmm", "bmm", "MatMul", "Gemm", "LSTM", "linear"});
  expect_class(OpClass::kAttention, {"_scaled_dot_product_efficient_attention", "Attention"});
  expect_class(OpClass::kConvolution, {"convolution", "Conv", "ConvTranspose"});
  expect_class(OpClass::kBatchNorm, {"_native_batch_norm_legit_functional", "BatchNormalization"});
  expect_class(OpClass::kLayerNorm,
               {"native_layer_norm", "LayerNormalization", "native_group_norm", "_fused_rms_norm"});
  expect_class(OpClass::kSoftmax, {"_softmax", "_log_softmax", "SoftmaxCrossEntropyLoss"});
  expect_class(OpClass::kReduction, {"sum", "mean", "ReduceMean", "amax", "linalg_vector_norm"});
  expect_class(OpClass::kPool, {"max_pool2d_with_indices", "MaxPool", "upsample_nearest2d"});
  expect_class(OpClass::kAveragePool, {"avg_pool2d", "GlobalAveragePool", "_adaptive_avg_pool2d"});
  expect_class(OpClass::kGather, {"embedding", "Gather", "index", "index_select"});
  expect_class(OpClass::kScatter, {"ScatterND", "index_put", "topk", "sort"});
  expect_class(OpClass::kConcat, {"cat", "Concat", "Slice", "constant_pad_nd", "Pad", "Split"});
  expect_class(OpClass::kCopy, {"clone", "Transpose", "permute"});
  expect_class(OpClass::kRandom, {"native_dropout", "Dropout", "RandomNormal", "rand_like"});
  expect_class(OpClass::kFill, {"zeros", "ones_like", "arange", "ConstantOfShape", "new_zeros"});
  expect_class(OpClass::kLoss, {"nll_loss_forward", "NegativeLogLikelihoodLoss"});
  expect_class(OpClass::kMetadata, {"unsafe_split", "_assert_tensor_metadata", "Shape"});
  expect_class(OpClass::kElementwise, {"relu", "Add", "mul", "Sum", "Max", "gelu", "hardtanh",
                                       "silu", "a_new_op_of_mine"});
  EXPECT_EQ(classify("sgd", Phase::kUpdate).op_class, OpClass::kUpdate);
}

TEST(OpClass, gradients_of_both_vocabularies_are_alike) {
  expect_class(OpClass::kConvolutionGrad,
               {"convolution_backward", "ConvGrad", "ConvInputGrad", "ConvWeightGrad"});
  expect_class(OpClass::kBatchNormGrad, {"native_batch_norm_backward", "BatchNormalizationGrad"});
  expect_class(OpClass::kLayerNormGrad, {"native_layer_norm_backward", "LayerNormalizationGrad"});
  expect_class(OpClass::kSoftmaxGrad,
               {"_softmax_backward_data", "SoftmaxGrad", "SoftmaxCrossEntropyLossGrad"});
  expect_class(OpClass::kPoolGrad, {"max_pool2d_with_indices_backward", "MaxPoolGrad"});
  expect_class(OpClass::kAveragePoolGrad, {"avg_pool2d_backward", "AveragePoolGrad"});
  expect_class(OpClass::kScatter, {"embedding_dense_backward", "GatherGrad"});
  expect_class(OpClass::kElementwise, {"threshold_backward", "ReluGrad", "DropoutGrad",
                                       "native_dropout_backward", "GeluGrad"});
}

// An op of the type over operands of the shapes; those marked are parameters, the others inputs.
class OneOp {
 public:
  OneOp& input(const Shape& shape, bool parameter = false, DType dtype = DType::kFloat32) {
    const std::string name = "t" + std::to_string(inputs_.size());
    const auto made = builder_.add({.name = name, .type = parameter ? "parameter" : "input"},
                                   {{.shape = shape, .dtype = dtype}});
    inputs_.push_back(made[0]);
    return *this;
  }
  // The last input, transposed by a view.
  OneOp& turned(const Shape& shape) {
    inputs_.back() =
        builder_.add({.name = "turned", .type = "t", .inputs = {inputs_.back()}, .view = true},
                     {{.shape = shape, .dtype = DType::kFloat32}})[0];
    return *this;
  }
  OpWork work(const std::string& type, const std::vector<Shape>& outputs,
              std::optional<std::int64_t> flops = std::nullopt, Phase phase = Phase::kForward) {
    std::vector<TensorSpec> specs;
    for (const Shape& shape : outputs) specs.push_back({.shape = shape, .dtype = DType::kFloat32});
    builder_.add({.name = "op", .type = type, .inputs = inputs_, .phase = phase, .flops = flops},
                 specs);
    const Graph graph = std::move(builder_).build();
    return WorkReader(graph).work(graph.num_ops() - 1);
  }

 private:
  GraphBuilder builder_{"one"};
  std::vector<TensorId> inputs_;
};

TEST(OpWork, products_are_told_apart_by_their_operands) {
  const Shape square{256, 256};
  EXPECT_EQ(OneOp().input(square).input(square, true).work("mm", {square}).op_class,
            OpClass::kMatMul);
  EXPECT_EQ(
      OneOp().input({256}, true).input(square).input(square, true).work("addmm", {square}).op_class,
      OpClass::kLinear);
  EXPECT_EQ(
      OneOp().input(square).input(square, true).input({256}, true).work("Gemm", {square}).op_class,
      OpClass::kLinear);
  EXPECT_EQ(OneOp().input(square).input(square).work("mm", {square}, {}, Phase::kBackward).op_class,
            OpClass::kMatMulGrad);
  EXPECT_EQ(OneOp()
                .input(square)
                .input(square, true)
                .turned(square)
                .work("mm", {square}, {}, Phase::kBackward)
                .op_class,
            OpClass::kMatMul);
  const OpWork batched =
      OneOp().input({8, 128, 64}).input({8, 64, 256}).work("bmm", {{8, 128, 256}});
  EXPECT_EQ(batched.op_class, OpClass::kBatchedMatMul);
  EXPECT_EQ(batched.flops, 2.0 * 8 * 128 * 256 * 64);
  EXPECT_EQ(batched.tiles, 8 * 1 * 2);
  // Activations with a leading batch times a matrix are one product.
  EXPECT_EQ(
      OneOp().input({8, 128, 64}).input({64, 256}, true).work("MatMul", {{8, 128, 256}}).op_class,
      OpClass::kMatMul);
}

TEST(OpWork, rows_that_are_no_multiple_of_16_bytes_are_unaligned) {
  const auto unaligned = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return OneOp().input({m, k}).input({n, k}, true).turned({k, n}).work("mm", {{m, n}}).unaligned;
  };
  EXPECT_FALSE(unaligned(64, 512, 768));
  EXPECT_FALSE(unaligned(63, 512, 768));  // the number of rows does not matter
  EXPECT_TRUE(unaligned(64, 50257, 768));
  EXPECT_TRUE(unaligned(64, 512, 767));
}

TEST(OpWork, a_convolution_costs_the_same_in_both_vocabularies) {
  const std::int64_t flops = 2LL * 32 * 128 * 28 * 28 * 64 * 9;
  const OpWork aten = OneOp()
                          .input({32, 64, 28, 28})
                          .input({128, 64, 3, 3}, true)
                          .work("convolution", {{32, 128, 28, 28}}, flops);
  const OpWork onnx = OneOp()
                          .input({32, 64, 28, 28})
                          .input({128, 64, 3, 3}, true)
                          .work("Conv", {{32, 128, 28, 28}}, flops);
  EXPECT_EQ(aten, onnx);
  EXPECT_EQ(aten.depth, 64 * 9);
  EXPECT_EQ(aten.op_class, OpClass::kConvolution);
}

TEST(OpWork, the_two_gradients_of_a_convolution_cost_what_they_cost_together) {
  const Shape x{32, 64, 28, 28};
  const Shape y{32, 128, 28, 28};
  const Shape w{128, 64, 3, 3};
  const double flops = 2.0 * 32 * 128 * 28 * 28 * 64 * 9;
  // PyTorch's own count is not believed.
  const OpWork both =
      OneOp().input(y).input(x).input(w, true).work("convolution_backward", {x, w}, 1);
  EXPECT_EQ(both.pieces, 2);
  EXPECT_EQ(both.flops, 2 * flops);
  const auto count = static_cast<std::int64_t>(flops);
  const OpWork by_input = OneOp().input(y).input(w, true).work("ConvInputGrad", {x}, count);
  const OpWork by_weight = OneOp().input(x).input(y).work("ConvWeightGrad", {w}, count);
  for (const OpWork& one : {by_input, by_weight}) {
    EXPECT_EQ(one.op_class, OpClass::kConvolutionGrad);
    EXPECT_EQ(one.pieces, 1);
    EXPECT_EQ(one.flops, flops);
    EXPECT_EQ(one.depth, both.depth);
  }
}

TEST(OpWork, kinds_of_convolutions_are_told_apart_by_their_weights) {
  const auto convolution = [](const Shape& x, const Shape& w, const Shape& y) {
    return OneOp().input(x).input(w, true).work("convolution", {y}).op_class;
  };
  EXPECT_EQ(convolution({8, 64, 9, 9}, {64, 1, 3, 3}, {8, 64, 9, 9}), OpClass::kDepthwise);
  EXPECT_EQ(convolution({8, 64, 9, 9}, {32, 64, 1, 1}, {8, 32, 9, 9}), OpClass::kPointwise);
  EXPECT_EQ(convolution({8, 64, 9, 9}, {64, 16, 3, 3}, {8, 64, 9, 9}), OpClass::kConvolution);
  EXPECT_EQ(convolution({8, 64, 90}, {32, 64, 3}, {8, 32, 90}), OpClass::kConvolution1d);
  // A grouped gradient counts one group's channels only.
  const OpWork grad = OneOp()
                          .input({8, 64, 9, 9})
                          .input({8, 64, 9, 9})
                          .input({64, 1, 3, 3}, true)
                          .work("convolution_backward", {{8, 64, 9, 9}, {64, 1, 3, 3}}, 1 << 30);
  EXPECT_EQ(grad.op_class, OpClass::kDepthwiseGrad);
  EXPECT_EQ(grad.flops, 2 * 2.0 * 8 * 64 * 9 * 9 * 9);
}

TEST(OpWork, each_step_of_a_sequence_starts_kernels_of_its_own) {
  const OpWork lstm = OneOp()
                          .input({35, 64, 512})
                          .input({1, 2048, 512}, true)
                          .input({1, 2048, 512}, true)
                          .work("LSTM", {{35, 1, 64, 512}}, 1000);
  EXPECT_EQ(lstm.op_class, OpClass::kMatMul);
  EXPECT_EQ(lstm.pieces, 35);
  EXPECT_EQ(lstm.flops, 1000);
}

TEST(OpWork, elementwise_ops_over_different_shapes_broadcast) {
  const Shape large{64, 512};
  EXPECT_EQ(OneOp().input(large).input(large).work("add", {large}).op_class, OpClass::kElementwise);
  EXPECT_EQ(OneOp().input(large).input({512}).work("Add", {large}).op_class, OpClass::kBroadcast);
  EXPECT_EQ(OneOp().input(large).input({}).work("mul", {large}).op_class, OpClass::kElementwise);
}

TEST(OpWork, ops_that_pick_do_not_read_everything) {
  const OpWork embedding = OneOp()
                               .input({50000, 64}, true)
                               .input({128}, false, DType::kInt64)
                               .work("embedding", {{128, 64}});
  EXPECT_EQ(embedding.bytes, 2 * 128 * 64 * 4 + 128 * 8);
  const OpWork loss =
      OneOp().input({128, 50000}).input({128}, false, DType::kInt64).work("nll_loss_forward", {{}});
  EXPECT_EQ(loss.bytes, 4 + 2 * 128 * 8);
  EXPECT_EQ(OneOp().input({64, 64}).work("ones_like", {{64, 64}}).bytes, 64 * 64 * 4);
  EXPECT_EQ(OneOp().input({64, 64}).work("unsafe_split", {{32, 64}}).bytes, 0);
}

TEST(OpWork, tensors_without_shapes_are_counted_by_their_bytes) {
  GraphBuilder builder("bytes");
  const auto x = builder.add({.name = "x", .type = "input"}, {{.bytes = 1000}});
  builder.add({.name = "conv", .type = "convolution_backward", .inputs = x, .flops = 77},
              {{.bytes = 500}});
  builder.add({.name = "mm", .type = "mm", .inputs = x, .flops = 78}, {{.bytes = 500}});
  const Graph graph = std::move(builder).build();
  WorkReader reader(graph);
  EXPECT_EQ(reader.work(1).flops, 77);
  EXPECT_EQ(reader.work(1).bytes, 1500);
  EXPECT_EQ(reader.work(2).flops, 78);
}

}  // namespace
}  // namespace emplace
