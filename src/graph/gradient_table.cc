// The operators that the backward pass knows (gradients.h). Sorted by name.
#include <algorithm>
#include <iterator>

#include "graph/gradient_rules.h"
#include "graph/gradients.h"

namespace emplace {
namespace {

namespace rules = gradient_rules;
using positions::kAll;
using positions::kButFirst;
using positions::kFirst;
using positions::kNone;
using positions::kSecond;
using positions::kThird;

// No gradient: the output does not change with small changes of the input, or is no number.
constexpr GradientRow stops(std::string_view type) {
  return {.type = type};
}

// "<Type>Grad" of the first input, from the gradient and what is said to be kept.
constexpr GradientRow single(std::string_view type, int factor, Positions inputs = kNone,
                             Positions outputs = kNone) {
  return {.type = type,
          .rule = rules::single,
          .factor = factor,
          .inputs = inputs,
          .outputs = outputs,
          .differentiable = kFirst,
          .passes = kFirst};
}

constexpr GradientRow from_x(std::string_view type, int factor) {
  return single(type, factor, kFirst);
}

constexpr GradientRow from_y(std::string_view type, int factor) {
  return single(type, factor, kNone, kFirst);
}

// Normalises the first input by its own statistics, then scales it. Mean and deviation are read
// where the op hands them out.
constexpr GradientRow norm(std::string_view type, int factor, Positions outputs = kNone) {
  return {.type = type,
          .rule = rules::joint,
          .factor = factor,
          .inputs = kFirst | kSecond,
          .outputs = outputs,
          .keeps = outputs == kNone ? "X, the scale" : "X, the scale, the other outputs",
          .differentiable = kFirst | kSecond | kThird,
          .passes = kFirst};
}

constexpr GradientRow operands(std::string_view type, int factor, Positions outputs = kNone) {
  return {.type = type,
          .rule = rules::each_operand,
          .factor = factor,
          .inputs = kAll,
          .outputs = outputs,
          .passes = kFirst};
}

// Several operators in one kernel, differentiated as one.
constexpr GradientRow fused(std::string_view type, int factor, Positions outputs = kNone) {
  return {.type = type, .rule = rules::joint, .factor = factor, .inputs = kAll, .outputs = outputs};
}

constexpr GradientRow matrix_product(std::string_view type, int halves, Positions outputs = kNone) {
  return {.type = type,
          .rule = rules::joint_product,
          .factor = halves,
          .inputs = kAll,
          .outputs = outputs,
          .passes = kFirst};
}

constexpr GradientRow special(std::string_view type, GradientRule rule, std::string_view keeps,
                              Positions differentiable = kAll, Positions passes = kFirst) {
  return {.type = type,
          .rule = rule,
          .keeps = keeps,
          .differentiable = differentiable,
          .passes = passes};
}

constexpr GradientRow recurrent(std::string_view type, int reserve) {
  return {.type = type,
          .rule = rules::recurrent,
          .keeps = reserve > 0 ? "all inputs, Y, gates and states" : "all inputs, Y",
          .reserve = reserve};
}

constexpr GradientRow loss(std::string_view type, int factor, std::string_view keeps,
                           GradientRule rule, Positions inputs = kNone) {
  return {.type = type,
          .rule = rule,
          .factor = factor,
          .inputs = inputs,
          .keeps = keeps,
          .differentiable = kFirst,
          .passes = kFirst};
}

constexpr GradientRow scatter(std::string_view type) {
  return {.type = type,
          .rule = rules::scatter,
          .inputs = kAll,
          .keeps = "the indices",
          .passes = kFirst};
}

constexpr std::string_view kNothing = "nothing";

constexpr GradientRow kRows[] = {
    from_x("Abs", 2),
    from_x("Acos", 4),
    from_x("Acosh", 4),
    special("Add", rules::add, kNothing),
    single("AffineGrid", 16),
    stops("And"),
    stops("ArgMax"),
    stops("ArgMin"),
    from_x("Asin", 4),
    from_x("Asinh", 4),
    from_x("Atan", 3),
    from_x("Atanh", 3),
    matrix_product("Attention", 5, kFirst),
    single("AveragePool", 1),
    norm("BatchNormalization", 7),
    stops("Bernoulli"),
    special("BiasAdd", rules::add, kNothing),
    {.type = "BiasDropout",
     .rule = rules::joint,
     .factor = 1,
     .outputs = kSecond,
     .keeps = "the mask",
     .differentiable = kFirst | kSecond | kThird,
     .passes = kFirst},
    fused("BiasGelu", 21),
    fused("BiasSoftmax", 4, kFirst),
    stops("BitShift"),
    stops("BitwiseAnd"),
    stops("BitwiseNot"),
    stops("BitwiseOr"),
    stops("BitwiseXor"),
    stops("BlackmanWindow"),
    special("Cast", rules::cast, kNothing, kFirst),
    special("CastLike", rules::cast, kNothing, kFirst),
    stops("Ceil"),
    from_x("Celu", 10),
    single("CenterCropPad", 0),
    single("Clip", 1, kAll),
    single("Col2Im", 0),
    single("Compress", 0, kButFirst),
    special("Concat", rules::concat, kNothing),
    stops("ConstantOfShape"),
    special("Conv", rules::conv, "X, W"),
    special("ConvTranspose", rules::conv, "X, W"),
    from_x("Cos", 9),
    from_x("Cosh", 9),
    single("CumProd", 4, kAll, kFirst),
    single("CumSum", 1, kButFirst),
    single("DFT", 0, kButFirst),
    matrix_product("DeformConv", 4),
    special("DepthToSpace", rules::depth_to_space, kNothing, kFirst),
    stops("DequantizeLinear"),
    single("Det", 4, kFirst, kFirst),
    special("Div", rules::divide, "the divisor; X if the divisor has a gradient"),
    special("Dropout", rules::dropout, "the mask", kFirst),
    special("Einsum", rules::einsum, "the other inputs"),
    from_x("Elu", 10),
    {.type = "EmbedLayerNormalization",
     .rule = rules::joint,
     .factor = 12,
     .inputs = kAll,
     .passes = kFirst},
    stops("Equal"),
    from_x("Erf", 11),
    from_y("Exp", 1),
    special("Expand", rules::expand, kNothing, kFirst),
    stops("EyeLike"),
    fused("FastGelu", 20),
    {.type = "FlashAttention",
     .rule = rules::fused_attention,
     .inputs = kAll,
     .outputs = kAll,
     .passes = kFirst},
    special("Flatten", rules::view, kNothing, kFirst),
    stops("Floor"),
    matrix_product("FusedConv", 4, kFirst),
    matrix_product("FusedGemm", 4, kFirst),
    special("FusedMatMul", rules::matmul, "A, B"),
    matrix_product("FusedMatMulActivation", 4, kFirst),
    recurrent("GRU", 4),
    single("Gather", 1, kButFirst),
    single("GatherElements", 1, kButFirst),
    single("GatherND", 1, kButFirst),
    from_x("Gelu", 20),
    special("Gemm", rules::gemm, "A, B"),
    single("GlobalAveragePool", 1),
    single("GlobalLpPool", 10, kFirst, kFirst),
    single("GlobalMaxPool", 1, kFirst, kFirst),
    stops("Greater"),
    stops("GreaterOrEqual"),
    {.type = "GridSample",
     .rule = rules::joint,
     .factor = 32,
     .inputs = kAll,
     .differentiable = kFirst | kSecond},
    norm("GroupNorm", 12),
    norm("GroupNormalization", 9),
    matrix_product("GroupQueryAttention", 5, kFirst),
    stops("HammingWindow"),
    stops("HannWindow"),
    from_x("HardSigmoid", 2),
    from_x("HardSwish", 4),
    stops("Hardmax"),
    special("Identity", rules::identity, kNothing, kFirst),
    norm("InstanceNormalization", 7),
    stops("IsInf"),
    stops("IsNaN"),
    single("LRN", 10, kFirst, kFirst),
    recurrent("LSTM", 5),
    norm("LayerNormalization", 11, kButFirst),
    from_x("LeakyRelu", 2),
    stops("Less"),
    stops("LessOrEqual"),
    from_x("Log", 1),
    from_y("LogSoftmax", 10),
    from_x("LpNormalization", 6),
    single("LpPool", 10, kFirst, kFirst),
    special("MatMul", rules::matmul, "A, B"),
    operands("Max", 2, kFirst),
    {.type = "MaxPool",
     .rule = rules::max_pool,
     .keeps = "the indices, else X, Y",
     .differentiable = kFirst,
     .passes = kFirst},
    single("MaxRoiPool", 1, kAll, kFirst),
    single("MaxUnpool", 0, kSecond),
    special("Mean", rules::mean, kNothing),
    from_x("MeanVarianceNormalization", 10),
    stops("MelWeightMatrix"),
    operands("Min", 2, kFirst),
    from_x("Mish", 24),
    operands("Mod", 2),
    special("Mul", rules::multiply, "each factor for the other's gradient"),
    matrix_product("MultiHeadAttention", 5, kFirst),
    stops("Multinomial"),
    {.type = "Neg", .rule = rules::same, .factor = 1, .keeps = kNothing, .passes = kFirst},
    loss("NegativeLogLikelihoodLoss", 1, "labels, weights", rules::single, kButFirst),
    matrix_product("NhwcFusedConv", 4, kFirst),
    stops("NonMaxSuppression"),
    stops("NonZero"),
    stops("Not"),
    stops("OneHot"),
    stops("Or"),
    operands("PRelu", 2),
    single("Pad", 0, kButFirst),
    operands("Pow", 10),
    from_x("QuickGelu", 14),
    norm("RMSNormalization", 8, kButFirst),
    recurrent("RNN", 0),
    stops("RandomNormal"),
    stops("RandomNormalLike"),
    stops("RandomUniform"),
    stops("RandomUniformLike"),
    stops("Range"),
    from_y("Reciprocal", 3),
    single("ReduceL1", 2, kAll),
    single("ReduceL2", 2, kAll, kFirst),
    single("ReduceLogSum", 2, kAll),
    single("ReduceLogSumExp", 10, kAll, kFirst),
    single("ReduceMax", 2, kAll, kFirst),
    single("ReduceMean", 1, kButFirst),
    single("ReduceMin", 2, kAll, kFirst),
    single("ReduceProd", 2, kAll, kFirst),
    single("ReduceSum", 0, kButFirst),
    single("ReduceSumSquare", 2, kAll),
    from_y("Relu", 1),
    special("Reshape", rules::view, kNothing, kFirst),
    single("Resize", 4),
    {.type = "ReverseSequence",
     .rule = rules::same,
     .keeps = "the lengths",
     .differentiable = kFirst,
     .passes = kFirst},
    single("RoiAlign", 32, kButFirst),
    single("RotaryEmbedding", 3, kButFirst),
    stops("Round"),
    single("STFT", 0, kButFirst),
    scatter("Scatter"),
    scatter("ScatterElements"),
    scatter("ScatterND"),
    from_x("Selu", 10),
    stops("Shape"),
    from_x("Shrink", 1),
    from_y("Sigmoid", 3),
    stops("Sign"),
    norm("SimplifiedLayerNormalization", 8, kButFirst),
    from_x("Sin", 9),
    from_x("Sinh", 9),
    stops("Size"),
    {.type = "SkipGroupNorm", .rule = rules::joint, .factor = 13, .inputs = kAll},
    {.type = "SkipLayerNormalization", .rule = rules::joint, .factor = 12, .inputs = kAll},
    {.type = "SkipSimplifiedLayerNormalization",
     .rule = rules::joint,
     .factor = 10,
     .inputs = kAll},
    single("Slice", 0, kButFirst),
    from_y("Softmax", 4),
    loss("SoftmaxCrossEntropyLoss", 10, "labels, weights, log-probabilities, else the scores",
         rules::loss),
    from_x("Softplus", 10),
    from_x("Softsign", 4),
    special("SpaceToDepth", rules::space_to_depth, kNothing, kFirst),
    special("Split", rules::split, kNothing, kFirst, kAll),
    from_y("Sqrt", 2),
    special("Squeeze", rules::view, kNothing, kFirst),
    special("Sub", rules::subtract, kNothing),
    special("Sum", rules::add, kNothing),
    from_x("Swish", 14),
    from_y("Tan", 3),
    from_y("Tanh", 3),
    from_x("ThresholdedRelu", 1),
    single("Tile", 1, kButFirst),
    single("TopK", 0, kNone, kSecond),
    special("Transpose", rules::transpose, kNothing, kFirst),
    special("TransposeMatMul", rules::matmul, "A, B"),
    {.type = "Trilu",
     .rule = rules::same,
     .keeps = "the other inputs",
     .differentiable = kFirst,
     .passes = kFirst},
    special("Unsqueeze", rules::view, kNothing, kFirst),
    single("Upsample", 4),
    special("Where", rules::where, "the condition"),
    stops("Xor"),
};

constexpr bool before(const GradientRow& a, const GradientRow& b) {
  return a.type < b.type;
}
static_assert(std::is_sorted(std::begin(kRows), std::end(kRows), before));

}  // namespace

const GradientRow* find_gradient_row(std::string_view type) {
  const GradientRow wanted{.type = type};
  const auto* found = std::lower_bound(std::begin(kRows), std::end(kRows), wanted, before);
  return found != std::end(kRows) && found->type == type ? found : nullptr;
}

std::span<const GradientRow> gradient_rows() {
  return kRows;
}

}  // namespace emplace
