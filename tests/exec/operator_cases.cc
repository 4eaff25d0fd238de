#include "exec/operator_cases.h"

namespace emplace::exec {
namespace {

using Integers = std::vector<std::int64_t>;

Operand real_operand(Shape shape) {
  return {.tensor = {.shape = std::move(shape), .dtype = DType::kFloat32}};
}
Operand ids(Shape shape) {
  return {.tensor = {.shape = std::move(shape), .dtype = DType::kInt64}, .source = "input"};
}
Operand truth_operand(Shape shape) {
  return {.tensor = {.shape = std::move(shape), .dtype = DType::kBool}, .source = "input"};
}
Operand list(const Integers& values) {
  return {.tensor = {.shape = {static_cast<std::int64_t>(values.size())}, .dtype = DType::kInt64},
          .source = "constant",
          .attributes = {{"value", values}}};
}
Operand number(std::int64_t value) {
  return {.tensor = {.shape = {}, .dtype = DType::kInt64},
          .source = "constant",
          .attributes = {{"value", value}}};
}
Operand limit(double value) {
  return {.tensor = {.shape = {}, .dtype = DType::kFloat32},
          .source = "constant",
          .attributes = {{"value", value}}};
}
TensorSpec out(Shape shape, DType dtype = DType::kFloat32) {
  return {.shape = std::move(shape), .dtype = dtype};
}

Cases elementwise() {
  const Operand x = real_operand({2, 6});
  const TensorSpec y = out({2, 6});
  const SeededNumbers positive{.low = 0.5, .high = 2};
  Cases cases;
  for (const char* type : {"Abs",       "Acos",      "Asin",       "Asinh",
                           "Atan",      "Atanh",     "Celu",       "Cos",
                           "Cosh",      "Elu",       "Erf",        "Exp",
                           "FastGelu",  "Gelu",      "Identity",   "HardSigmoid",
                           "HardSwish", "LeakyRelu", "LogSoftmax", "LpNormalization",
                           "Mish",      "Neg",       "QuickGelu",  "Relu",
                           "Selu",      "Shrink",    "Sigmoid",    "Sin",
                           "Sinh",      "Softmax",   "Softplus",   "Softsign",
                           "Swish",     "Tan",       "Tanh",       "ThresholdedRelu",
                           "Cast",      "CastLike"}) {
    cases.push_back({type, {x}, {y}});
  }
  for (const char* type : {"Log", "Sqrt", "Reciprocal"}) {
    cases.push_back({type, {x}, {y}, {}, positive});
  }
  cases.push_back({"Acosh", {x}, {y}, {}, {.low = 1.5, .high = 3}});
  for (const char* type : {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "PRelu", "Sum",
                           "Mean", "BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu"}) {
    const std::string name(type);
    const bool keep_positive = name == "Div" || name == "Pow" || name == "Mod";
    cases.push_back(
        {type, {x, real_operand({6})}, {y}, {}, keep_positive ? positive : SeededNumbers{}});
  }
  cases.push_back({"Mod", {x, real_operand({6})}, {y}, {{"fmod", std::int64_t{1}}}, positive});
  cases.push_back({"Gelu", {x}, {y}, {{"approximate", "tanh"}}});
  cases.push_back({"Clip", {x, limit(-0.5), limit(0.5)}, {y}});
  cases.push_back({"Where", {truth_operand({2, 1}), x, real_operand({6})}, {y}});
  const Attributes training{{"training_mode", std::int64_t{1}}};
  cases.push_back({"Dropout", {x, limit(0.3)}, {y, out({2, 6}, DType::kBool)}, training});
  cases.push_back({"Dropout", {x}, {y}});
  cases.push_back({"Softmax", {x}, {y}, {{"axis", std::int64_t{0}}}});
  cases.push_back({"LogSoftmax", {x}, {y}, {{"axis", std::int64_t{0}}}});
  const Attributes flattened{{"axis", std::int64_t{1}}, {"flattened", std::int64_t{1}}};
  for (const char* type : {"Softmax", "LogSoftmax"}) {
    cases.push_back({type, {real_operand({2, 3, 4})}, {out({2, 3, 4})}, flattened});
  }
  return cases;
}

Cases reductions() {
  const Operand x = real_operand({2, 3, 4});
  const SeededNumbers positive{.low = 0.5, .high = 2};
  Cases cases;
  for (const char* type :
       {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
        "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    const Attributes flat{{"keepdims", std::int64_t{0}}};
    cases.push_back({type, {x, list({1, -1})}, {out({2})}, flat, positive});
    cases.push_back({type, {x}, {out({2, 1, 4})}, {{"axes", Integers{1}}}, positive});
    cases.push_back({type, {x}, {out({})}, flat, positive});
  }
  const Attributes backwards{{"reverse", std::int64_t{1}}, {"exclusive", std::int64_t{1}}};
  cases.push_back({"CumSum", {x, number(1)}, {out({2, 3, 4})}});
  cases.push_back({"CumSum", {x, number(-1)}, {out({2, 3, 4})}, backwards});
  cases.push_back({"CumProd", {x, number(1)}, {out({2, 3, 4})}});
  cases.push_back({"CumProd", {x, number(-1)}, {out({2, 3, 4})}, backwards});
  const TensorSpec numbers = out({2, 2, 4}, DType::kInt64);
  cases.push_back({"TopK", {x, list({2})}, {out({2, 2, 4}), numbers}, {{"axis", std::int64_t{1}}}});
  return cases;
}

Cases products() {
  const Attributes trans_b{{"transB", std::int64_t{1}}, {"alpha", 0.5}};
  const Attributes trans_both{{"transA", std::int64_t{1}}, {"transB", std::int64_t{1}}};
  const Attributes gemm{{"transA", std::int64_t{1}}, {"alpha", 0.5}, {"beta", 2.0}};
  Cases cases{
      {"MatMul", {real_operand({2, 3}), real_operand({3, 4})}, {out({2, 4})}},
      {"MatMul", {real_operand({2, 5, 3}), real_operand({3, 4})}, {out({2, 5, 4})}},
      {"MatMul", {real_operand({2, 5, 3}), real_operand({1, 3, 4})}, {out({2, 5, 4})}},
      {"MatMul", {real_operand({5, 3}), real_operand({2, 3, 4})}, {out({2, 5, 4})}},
      {"MatMul", {real_operand({3}), real_operand({2, 3, 4})}, {out({2, 4})}},
      {"MatMul", {real_operand({2, 5, 3}), real_operand({3})}, {out({2, 5})}},
      {"MatMul", {real_operand({3}), real_operand({3})}, {out({})}},
      {"Gemm", {real_operand({2, 3}), real_operand({3, 4}), real_operand({4})}, {out({2, 4})}},
      {"Gemm",
       {real_operand({3, 2}), real_operand({3, 4}), real_operand({2, 1})},
       {out({2, 4})},
       gemm},
      {"Gemm", {real_operand({3, 2}), real_operand({4, 3})}, {out({2, 4})}, trans_both},
      {"Einsum",
       {real_operand({2, 3}), real_operand({3, 4})},
       {out({2, 4})},
       {{"equation", "ij,jk->ik"}}},
      {"Einsum", {real_operand({2, 3})}, {out({3, 2})}, {{"equation", "ij->ji"}}},
      {"Einsum",
       {real_operand({2, 5, 3}), real_operand({2, 4, 3}), real_operand({4})},
       {out({2, 5, 4})},
       {{"equation", "bqd, bkd, k -> bqk"}}},
  };
  for (const char* type : {"FusedMatMul", "TransposeMatMul"}) {
    cases.push_back(
        {type, {real_operand({2, 5, 3}), real_operand({4, 3})}, {out({2, 5, 4})}, trans_b});
    cases.push_back(
        {type, {real_operand({2, 3, 5}), real_operand({2, 4, 3})}, {out({2, 5, 4})}, trans_both});
  }
  return cases;
}

Cases convolutions() {
  const Operand image = real_operand({2, 4, 7, 6});
  const Attributes uneven{{"kernel_shape", Integers{3, 2}},
                          {"pads", Integers{1, 0, 2, 1}},
                          {"strides", Integers{2, 1}},
                          {"dilations", Integers{1, 2}},
                          {"group", std::int64_t{2}}};
  const Attributes same{{"auto_pad", "SAME_UPPER"}, {"strides", Integers{2, 2}}};
  const Attributes lower{{"auto_pad", "SAME_LOWER"}, {"strides", Integers{2, 2}}};
  const Attributes crop{{"pads", Integers{-1, 0, 0, -2}}};
  const Attributes strided{{"strides", Integers{2, 2}},
                           {"pads", Integers{1, 0, 0, 1}},
                           {"output_padding", Integers{1, 0}}};
  return {
      {"Conv", {image, real_operand({3, 4, 3, 3}), real_operand({3})}, {out({2, 3, 5, 4})}},
      {"Conv", {image, real_operand({6, 2, 3, 2}), real_operand({6})}, {out({2, 6, 4, 5})}, uneven},
      {"Conv", {image, real_operand({3, 4, 2, 3})}, {out({2, 3, 4, 3})}, same},
      {"Conv", {image, real_operand({3, 4, 2, 3})}, {out({2, 3, 4, 3})}, lower},
      {"Conv", {image, real_operand({3, 4, 3, 3})}, {out({2, 3, 4, 2})}, crop},
      {"Conv",
       {image, real_operand({3, 4, 1, 1})},
       {out({2, 3, 4, 3})},
       {{"strides", Integers{2, 2}}}},
      {"Conv",
       {real_operand({2, 3, 2}), real_operand({4, 3, 1})},
       {out({2, 4, 1})},
       {{"strides", Integers{2}}}},
      {"Conv",
       {real_operand({2, 3, 9}), real_operand({4, 3, 3}), real_operand({4})},
       {out({2, 4, 7})}},
      {"Conv",
       {real_operand({1, 2, 4, 4, 4}), real_operand({3, 2, 2, 2, 2})},
       {out({1, 3, 3, 3, 3})}},
      {"ConvTranspose",
       {image, real_operand({4, 3, 2, 2}), real_operand({3})},
       {out({2, 3, 8, 7})}},
      {"ConvTranspose", {image, real_operand({4, 3, 3, 3})}, {out({2, 3, 15, 12})}, strided},
      {"ConvTranspose", {real_operand({2, 3, 5}), real_operand({3, 2, 3})}, {out({2, 2, 7})}},
  };
}

Cases pools() {
  const Operand image = real_operand({2, 3, 7, 6});
  const Attributes plain{{"kernel_shape", Integers{3, 2}}, {"strides", Integers{2, 2}}};
  Attributes padded = plain;
  padded.set("pads", Integers{1, 0, 1, 1});
  const Attributes ceiling{{"kernel_shape", Integers{2, 4}},
                           {"strides", Integers{2, 2}},
                           {"pads", Integers{0, 1, 0, 1}},
                           {"ceil_mode", std::int64_t{1}}};
  Attributes counted = padded;
  counted.set("count_include_pad", std::int64_t{1});
  Attributes dilated = plain;
  dilated.set("dilations", Integers{2, 1});
  const Attributes line{{"kernel_shape", Integers{3}}};
  Cases cases;
  for (const char* type : {"AveragePool", "LpPool", "MaxPool"}) {
    cases.push_back({type, {image}, {out({2, 3, 3, 3})}, plain});
    cases.push_back({type, {image}, {out({2, 3, 4, 3})}, padded});
    cases.push_back({type, {image}, {out({2, 3, 4, 3})}, ceiling});
    cases.push_back({type, {image}, {out({2, 3, 2, 3})}, dilated});
    cases.push_back({type, {real_operand({2, 3, 7})}, {out({2, 3, 5})}, line});
  }
  cases.push_back({"AveragePool", {image}, {out({2, 3, 4, 3})}, counted});
  const TensorSpec numbers = out({2, 3, 4, 3}, DType::kInt64);
  cases.push_back({"MaxPool", {image}, {out({2, 3, 4, 3}), numbers}, padded});
  Attributes overhang{{"kernel_shape", Integers{2, 2}},
                      {"strides", Integers{2, 2}},
                      {"ceil_mode", std::int64_t{1}},
                      {"count_include_pad", std::int64_t{1}}};
  cases.push_back({"AveragePool", {image}, {out({2, 3, 4, 3})}, overhang});
  for (const char* type : {"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"}) {
    cases.push_back({type, {image}, {out({2, 3, 1, 1})}});
  }
  return cases;
}

Cases norms() {
  const Operand image = real_operand({3, 4, 3, 2});
  const TensorSpec same = out({3, 4, 3, 2});
  const Operand sequence = real_operand({2, 5, 8});
  const TensorSpec y = out({2, 5, 8});
  const TensorSpec by_row = out({2, 5, 1});
  const Operand c = real_operand({4});
  const Attributes groups{{"num_groups", std::int64_t{2}}};
  const Attributes axis{{"axis", std::int64_t{1}}};
  const Attributes four{{"size", std::int64_t{4}}, {"alpha", 0.5}};
  return {
      {"BatchNormalization", {image, c, c, c, c}, {same}},
      {"BatchNormalization",
       {image, c, c, c, c},
       {same, out({4}), out({4})},
       {{"training_mode", std::int64_t{1}}, {"momentum", 0.75}}},
      {"InstanceNormalization", {image, c, c}, {same}},
      {"GroupNormalization", {image, c, c}, {same}, groups},
      {"GroupNormalization", {image, real_operand({2}), real_operand({2})}, {same}, groups},
      {"GroupNormalization", {real_operand({6, 4}), c, c}, {out({6, 4})}, groups},
      {"InstanceNormalization", {real_operand({3, 4, 5}), c, c}, {out({3, 4, 5})}},
      {"LayerNormalization", {sequence, real_operand({8}), real_operand({8})}, {y, by_row, by_row}},
      {"LayerNormalization", {sequence, real_operand({5, 8})}, {y}, axis},
      {"BatchNormalization",
       {real_operand({2, 6}), real_operand({6}), real_operand({6}), real_operand({6}),
        real_operand({6})},
       {out({2, 6})}},
      {"RMSNormalization", {sequence, real_operand({8})}, {y}},
      {"SimplifiedLayerNormalization", {sequence, real_operand({8})}, {y, by_row}},
      {"SkipLayerNormalization", {sequence, sequence, real_operand({8}), real_operand({8})}, {y}},
      {"SkipLayerNormalization", {sequence, sequence, real_operand({8})}, {y, y}},
      {"SkipSimplifiedLayerNormalization", {sequence, sequence, real_operand({8})}, {y}},
      {"LRN", {image}, {same}, four},
      {"LRN", {image}, {same}, {{"size", std::int64_t{3}}}},
      {"LpNormalization", {sequence}, {y}, {{"p", std::int64_t{1}}}},
      {"MeanVarianceNormalization", {image}, {same}},
  };
}

Cases layout() {
  const Operand x = real_operand({2, 6});
  const Operand image = real_operand({2, 8, 4, 4});
  const TensorSpec y = out({2, 6});
  const Attributes crd{{"blocksize", std::int64_t{2}}, {"mode", "CRD"}};
  const Attributes block{{"blocksize", std::int64_t{2}}};
  const Attributes along{{"axis", std::int64_t{1}}};
  return {
      {"Reshape", {x, list({12})}, {out({12})}},
      {"Reshape", {real_operand({8, 3}), list({4, 6})}, {out({4, 6})}},
      {"Flatten", {image}, {out({2, 128})}},
      {"Squeeze", {real_operand({2, 1, 6}), list({1})}, {y}},
      {"Unsqueeze", {x, list({1})}, {out({2, 1, 6})}},
      {"Expand", {real_operand({2, 1}), list({3, 2, 6})}, {out({3, 2, 6})}},
      {"Transpose", {real_operand({2, 3, 4})}, {out({3, 4, 2})}, {{"perm", Integers{1, 2, 0}}}},
      {"Transpose", {real_operand({2, 3, 4})}, {out({4, 3, 2})}},
      {"Concat", {x, real_operand({2, 3})}, {out({2, 9})}, {{"axis", std::int64_t{-1}}}},
      {"Split", {x, list({1, 5})}, {out({2, 1}), out({2, 5})}, along},
      {"Slice", {x, list({1}), list({9}), list({1}), list({2})}, {out({2, 3})}},
      {"Slice", {x, list({-1}), list({-7}), list({1}), list({-2})}, {out({2, 3})}},
      {"Slice", {x}, {out({1, 3})}, {{"starts", Integers{1, 2}}, {"ends", Integers{2, 5}}}},
      {"Slice",
       {x, list({0, 1}), list({2, 6}), list({1, 2})},
       {out({2, 3})},
       {{"omitted_inputs", Integers{3}}}},
      {"Pad", {x, list({1, 0, 0, 2})}, {out({3, 8})}},
      {"Pad", {x, list({1, 2}), list({1})}, {out({2, 9})}, {{"omitted_inputs", Integers{2}}}},
      {"Pad", {x, list({0, 1, 0, -2})}, {out({2, 5})}},
      {"Pad", {x}, {out({3, 8})}, {{"pads", Integers{1, 0, 0, 2}}}},
      {"Pad", {x, list({0, 2, 0, 3})}, {out({2, 11})}, {{"mode", "reflect"}}},
      {"Pad", {x, list({1, 2, 0, 3})}, {out({3, 11})}, {{"mode", "edge"}}},
      {"Tile", {x, list({2, 1})}, {out({4, 6})}},
      {"Trilu", {real_operand({2, 4, 4}), number(1)}, {out({2, 4, 4})}},
      {"Trilu", {real_operand({4, 4}), number(0)}, {out({4, 4})}, {{"upper", std::int64_t{0}}}},
      {"ReverseSequence", {real_operand({3, 2, 4}), list({3, 2})}, {out({3, 2, 4})}},
      {"DepthToSpace", {image}, {out({2, 2, 8, 8})}, block},
      {"DepthToSpace", {image}, {out({2, 2, 8, 8})}, crd},
      {"SpaceToDepth", {image}, {out({2, 32, 2, 2})}, block},
      {"Resize", {real_operand({2, 3, 4, 4})}, {out({2, 3, 8, 6})}},
      {"Resize", {real_operand({2, 3, 4, 4})}, {out({2, 3, 8, 3})}, {{"mode", "linear"}}},
      {"Resize",
       {real_operand({2, 3, 4, 5})},
       {out({2, 3, 4, 7})},
       {{"mode", "linear"}, {"scales", std::vector<double>{1, 1, 1, 1.5}}}},
      {"Upsample", {real_operand({2, 3, 4, 4})}, {out({2, 3, 8, 8})}},
  };
}

Cases indexing() {
  const Operand x = real_operand({4, 6});
  const TensorSpec y = out({4, 6});
  const Attributes along{{"axis", std::int64_t{1}}};
  const Attributes add{{"reduction", "add"}};
  const Attributes piece{{"row_offset", std::int64_t{2}}};
  const Operand rows = list({5, 2, 0, 3, 3});
  return {
      {"Gather", {x, ids({2, 3})}, {out({2, 3, 6})}},
      {"Gather", {x, ids({3})}, {out({4, 3})}, along},
      {"Gather", {real_operand({6, 4}), list({-1, 2, -6, 0})}, {out({4, 4})}},
      {"Gather", {real_operand({3, 6}), rows}, {out({5, 6})}, piece},
      {"GatherElements", {x, ids({4, 2})}, {out({4, 2})}, along},
      {"GatherND", {x, ids({5, 1})}, {out({5, 6})}},
      {"GatherND",
       {real_operand({2, 4, 3}), ids({2, 1})},
       {out({2, 3})},
       {{"batch_dims", std::int64_t{1}}}},
      {"Scatter", {x, ids({1, 6}), real_operand({1, 6})}, {y}},
      {"ScatterElements", {x, ids({1, 6}), real_operand({1, 6})}, {y}},
      {"ScatterElements", {x, ids({4, 2}), real_operand({4, 2})}, {y}, add},
      {"ScatterND", {x, ids({1, 1}), real_operand({1, 6})}, {y}},
      {"ScatterND", {x, ids({3, 2}), real_operand({3})}, {y}, add},
      {"ScatterND",
       {real_operand({3, 6}), ids({1, 1}), real_operand({1, 6})},
       {out({3, 6})},
       piece},
      {"Compress",
       {x,
        {.tensor = out({4}, DType::kBool),
         .source = "constant",
         .attributes = {{"value", Integers{1, 0, 1, 0}}}}},
       {out({2, 6})},
       {{"axis", std::int64_t{0}}}},
  };
}

Cases losses() {
  const Operand scores = real_operand({5, 4});
  const Operand pixels = real_operand({2, 4, 3});
  const TensorSpec logarithms = out({5, 4});
  Cases cases;
  for (const char* type : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
    const Operand weights{.tensor = out({4}), .source = "buffer"};
    cases.push_back({type, {scores, ids({5})}, {out({})}});
    const Operand like_labels{.tensor = out({6}), .source = "buffer"};
    cases.push_back({type, {real_operand({6, 6}), ids({6}), like_labels}, {out({})}});
    cases.push_back({type, {scores, ids({5})}, {out({})}, {{"mean_count", std::int64_t{7}}}});
    cases.push_back({type, {scores, ids({5})}, {out({5})}, {{"reduction", "none"}}});
    cases.push_back({type, {pixels, ids({2, 3})}, {out({})}, {{"reduction", "sum"}}});
    cases.push_back(
        {type, {scores, ids({5}), weights}, {out({})}, {{"ignore_index", std::int64_t{1}}}});
    cases.push_back({type, {pixels, ids({2, 3})}, {out({})}, {{"ignore_index", std::int64_t{2}}}});
  }
  cases.push_back({"SoftmaxCrossEntropyLoss", {scores, ids({5})}, {out({}), logarithms}});
  return cases;
}

Cases recurrent() {
  const Operand x = real_operand({3, 2, 5});
  const Operand state = real_operand({1, 2, 4});
  const TensorSpec y = out({3, 1, 2, 4});
  const TensorSpec last = out({1, 2, 4});
  const Attributes both{{"direction", "bidirectional"}};
  const Attributes reverse{{"direction", "reverse"}};
  const Attributes batch_first{{"layout", std::int64_t{1}}};
  Cases cases;
  const std::map<std::string, std::int64_t> gates{{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}};
  for (const auto& [type, count] : gates) {
    const std::int64_t rows = count * 4;
    const Operand w = real_operand({1, rows, 5});
    const Operand r = real_operand({1, rows, 4});
    const Operand b = real_operand({1, 2 * rows});
    cases.push_back({type, {x, w, r}, {y}});
    cases.push_back({type, {x, w, r, b}, {y, last}, reverse});
    cases.push_back({type, {x, w, r, b, list({3, 1}), state}, {y, last}, reverse});
    cases.push_back({type,
                     {real_operand({2, 3, 5}), w, r, real_operand({2, 1, 4})},
                     {out({2, 3, 1, 4}), out({2, 1, 4})},
                     batch_first});
    cases.push_back(
        {type,
         {x, real_operand({2, rows, 5}), real_operand({2, rows, 4}), real_operand({2, 2 * rows})},
         {out({3, 2, 2, 4}), out({2, 2, 4})},
         both});
  }
  const Operand w = real_operand({1, 16, 5});
  const Operand r = real_operand({1, 16, 4});
  cases.push_back({"LSTM",
                   {x, w, r, real_operand({1, 32}), state, state, real_operand({1, 12})},
                   {y, last, last}});
  cases.push_back({"LSTM", {x, w, r}, {last, last}});
  cases.push_back({"LSTM",
                   {x, w, r, state},
                   {y, last},
                   {{"omitted_inputs", Integers{3, 4, 5}}, {"omitted_outputs", Integers{1}}}});
  cases.push_back(
      {"LSTM", {x, w, r}, {y}, {{"activations", "Softplus,Softsign,Tanh"}, {"clip", 0.9}}});
  cases.push_back({"GRU",
                   {x, real_operand({1, 12, 5}), real_operand({1, 12, 4}), real_operand({1, 24})},
                   {y},
                   {{"linear_before_reset", std::int64_t{1}}}});
  return cases;
}

Cases attention() {
  const Operand sequence = real_operand({2, 3, 8});
  const TensorSpec y = out({2, 3, 8});
  const Attributes heads{{"num_heads", std::int64_t{2}}};
  const Attributes onnx{{"q_num_heads", std::int64_t{2}},
                        {"kv_num_heads", std::int64_t{1}},
                        {"is_causal", std::int64_t{1}}};
  const Attributes grouped{{"num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}};
  const Operand table = real_operand({3, 2});
  Operand positions = list({0, 1, 2, 2, 1, 0});
  positions.tensor.shape = {2, 3};
  const Operand q = real_operand({3, 4, 5, 6});
  const Operand k = real_operand({3, 2, 7, 6});
  const Operand v = real_operand({3, 2, 7, 3});
  const TensorSpec heads_out = out({3, 4, 5, 3});
  const TensorSpec sums = out({3, 4, 5});
  const Attributes causal{{"is_causal", std::int64_t{1}}, {"scale", 0.3}};
  const Attributes window{{"is_causal", std::int64_t{1}}, {"window", std::int64_t{3}}};
  const Attributes random{{"is_causal", std::int64_t{1}}, {"dropout", 0.4}};
  return {
      {"FlashAttention", {q, k, v}, {heads_out, sums}},
      {"FlashAttention", {q, k, v}, {heads_out, sums}, causal},
      {"FlashAttention", {q, k, v}, {heads_out, sums}, random},
      {"FlashAttention", {q, k, v, real_operand({4})}, {heads_out, sums}, window},
      {"FlashAttention",
       {real_operand({2, 4, 3, 2}), real_operand({2, 4, 3, 2}), real_operand({2, 4, 3, 2})},
       {out({2, 4, 3, 2}), out({2, 4, 3})}},
      {"Attention", {sequence, real_operand({2, 5, 4}), real_operand({2, 5, 4})}, {y}, onnx},
      {"Attention", {sequence, real_operand({8, 24}), real_operand({24})}, {y}, heads},
      {"Attention",
       {q, k, real_operand({3, 2, 7, 6}), real_operand({3, 1, 5, 7})},
       {out({3, 4, 5, 6})}},
      {"Attention", {q, k, v, truth_operand({5, 7})}, {heads_out}, {{"scale", 0.3}}},
      {"Attention",
       {real_operand({3, 5, 24}), real_operand({3, 7, 12}), real_operand({3, 7, 6}),
        real_operand({4, 5, 7})},
       {out({3, 5, 12})},
       {{"q_num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}}},
      {"MultiHeadAttention", {sequence, sequence, sequence}, {y}, heads},
      {"MultiHeadAttention",
       {sequence, real_operand({2, 5, 8}), real_operand({2, 5, 8})},
       {y},
       {{"num_heads", std::int64_t{4}}}},
      {"GroupQueryAttention",
       {sequence, real_operand({2, 3, 4}), real_operand({2, 3, 4})},
       {y},
       grouped},
      {"RotaryEmbedding",
       {real_operand({2, 2, 3, 4}), table, table, positions},
       {out({2, 2, 3, 4})}},
      {"RotaryEmbedding",
       {real_operand({2, 3, 8}), positions, table, table},
       {out({2, 3, 8})},
       {{"interleaved", std::int64_t{1}}}},
  };
}

// With what was kept of earlier steps, masks and biases, where some inputs are left out.
Cases attention_of_steps() {
  const auto without = [](Attributes attributes, const Integers& inputs) {
    attributes.set("omitted_inputs", inputs);
    return attributes;
  };
  const Operand sequence = real_operand({2, 3, 8});
  const TensorSpec y = out({2, 3, 8});
  const Attributes heads{{"num_heads", std::int64_t{2}}};
  const Attributes grouped{{"num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}};
  const Attributes causal{{"is_causal", std::int64_t{1}}};
  const Operand past = real_operand({2, 2, 4, 4});
  const TensorSpec present = out({2, 2, 7, 4});
  const Operand few = real_operand({2, 3, 4});
  Operand counts = list({1, 1, 0, 1, 0, 1});
  counts.tensor.shape = {2, 3};
  return {
      {"Attention",
       {real_operand({3, 4, 5, 6}), real_operand({3, 2, 7, 6}), real_operand({3, 2, 7, 3}),
        real_operand({3, 2, 2, 6}), real_operand({3, 2, 2, 3})},
       {out({3, 4, 5, 3}), out({3, 2, 9, 6}), out({3, 2, 9, 3})},
       without(causal, {3})},
      {"Attention",
       {real_operand({2, 4, 5, 6}), real_operand({2, 4, 7, 6}), real_operand({2, 4, 7, 6}),
        real_operand({2, 1, 5, 9}), real_operand({2, 4, 2, 6}), real_operand({2, 4, 2, 6})},
       {out({2, 4, 5, 6})}},
      {"MultiHeadAttention", {sequence, sequence, sequence, real_operand({24})}, {y}, heads},
      {"MultiHeadAttention", {sequence, sequence, sequence, counts}, {y}, without(heads, {3})},
      {"MultiHeadAttention",
       {sequence, sequence, sequence, real_operand({1, 2, 3, 7}), past, past},
       {y, present, present},
       without(heads, {3, 4})},
      {"GroupQueryAttention",
       {sequence, few, few, ids({2}), number(3)},
       {y},
       without(grouped, {3, 4})},
      {"GroupQueryAttention",
       {sequence, few, few, real_operand({2, 2, 4, 2}), real_operand({2, 2, 4, 2}), ids({2}),
        number(7)},
       {y, out({2, 2, 7, 2}), out({2, 2, 7, 2})},
       grouped},
  };
}

Cases repeated() {
  const Operand x = real_operand({3, 3});
  const TensorSpec y = out({3, 3});
  const SeededNumbers positive{.low = 0.5, .high = 2};
  const Attributes heads{{"num_heads", std::int64_t{2}}};
  Cases cases{
      {"Concat", {x}, {out({6, 3})}, {{"axis", std::int64_t{0}}}, {}, 1},
      {"Einsum", {x}, {y}, {{"equation", "ij,jk->ik"}}, {}, 1},
      {"MultiHeadAttention", {real_operand({2, 3, 8})}, {out({2, 3, 8})}, heads, {}, 2},
      {"Where", {truth_operand({3, 3}), x, x}, {y}},
  };
  for (const char* type :
       {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "MatMul", "Gemm"}) {
    cases.push_back({type, {x}, {y}, {}, positive, 1});
  }
  cases.push_back({"Sum", {x, real_operand({3})}, {y}, {}, {}, 1});
  return cases;
}

Cases fused() {
  const Operand x = real_operand({2, 6});
  const Operand image = real_operand({2, 4, 5, 5});
  const Operand kernels = real_operand({3, 4, 3, 3});
  const TensorSpec y = out({2, 3, 3, 3});
  const Attributes relu{{"activation", "Relu"}};
  const Attributes leaky{{"activation", "LeakyRelu"}, {"activation_alpha", 0.3}};
  const TensorSpec mask = out({2, 6}, DType::kBool);
  const Attributes training{{"training_mode", std::int64_t{1}}};
  return {
      {"FusedConv", {image, kernels, real_operand({3})}, {y}, relu},
      {"FusedConv", {image, kernels, real_operand({2, 3, 3, 3})}, {y}, relu},
      {"FusedGemm", {x, real_operand({6, 3}), real_operand({3})}, {out({2, 3})}, leaky},
      {"FusedMatMulActivation", {x, real_operand({6, 3})}, {out({2, 3})}, relu},
      {"BiasDropout", {x, real_operand({6}), x, limit(0.3)}, {out({2, 6}), mask}, training},
      {"BiasDropout", {x, real_operand({6}), limit(0.3)}, {out({2, 6}), mask}, training},
      {"GridSample", {image, real_operand({2, 3, 3, 2})}, {out({2, 4, 3, 3})}},
  };
}

}  // namespace

const Cases& all_cases() {
  static const Cases all = [] {
    Cases made;
    for (const Cases& family :
         {elementwise(), reductions(), products(), convolutions(), pools(), norms(), layout(),
          indexing(), losses(), recurrent(), repeated(), fused(), attention()}) {
      made.insert(made.end(), family.begin(), family.end());
    }
    return made;
  }();
  return all;
}

const Cases& forward_cases() {
  static const Cases all = [] {
    const TensorSpec yes = out({2, 6}, DType::kBool);
    const TensorSpec y = out({2, 6});
    const TensorSpec whole = out({2, 6}, DType::kInt64);
    const Operand x = real_operand({2, 6});
    const Operand n = ids({2, 6});
    Cases cases;
    for (const char* type : {"And", "Or", "Xor"}) {
      cases.push_back({type, {truth_operand({2, 6}), truth_operand({6})}, {yes}});
    }
    for (const char* type : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) {
      cases.push_back({type, {x, real_operand({6})}, {yes}});
    }
    for (const char* type : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      cases.push_back({type, {n, ids({6})}, {whole}});
    }
    for (const char* type : {"Ceil", "Floor", "Round", "Sign", "Hardmax"}) {
      cases.push_back({type, {x}, {y}});
    }
    for (const char* type : {"IsInf", "IsNaN"}) cases.push_back({type, {x}, {yes}});
    cases.push_back({"Not", {truth_operand({2, 6})}, {yes}});
    cases.push_back({"BitwiseNot", {n}, {whole}});
    for (const char* type : {"ArgMax", "ArgMin"}) {
      cases.push_back({type, {x}, {out({2, 1}, DType::kInt64)}, {{"axis", std::int64_t{1}}}});
      cases.push_back({type, {x}, {out({6}, DType::kInt64)}, {{"keepdims", std::int64_t{0}}}});
    }
    for (const Case& each : attention_of_steps()) cases.push_back(each);
    Operand values = list({0, 1});
    cases.push_back({"OneHot", {ids({5, 2}), number(4), values}, {out({5, 2, 4}, DType::kInt64)}});
    return cases;
  }();
  return all;
}

}  // namespace emplace::exec
