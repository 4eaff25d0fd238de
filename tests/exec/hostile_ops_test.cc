// Graphs that ask operators for what they cannot compute: too few inputs, shapes that do not fit,
// attributes far from anything real. Each is an Error that names the op, or computes something;
// never a crash, nor memory that is not the op's.
#include <algorithm>
#include <initializer_list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "graph/graph_builder.h"

#include "exec/compiled_op.h"
#include "exec/kernel.h"
#include "exec/run_op.h"
#include "exec/sources.h"

namespace emplace::exec {
namespace {

using ::testing::HasSubstr;

std::string answer_of(const OneOp& model) {
  try {
    run_op(model);
  } catch (const Error& error) {
    return error.what();
  }
  return "is computed";
}

TEST(ExecHostileOps, inputs_that_are_not_there_are_missed) {
  for (const char* type :
       {"BatchNormalization", "BatchNormalizationGrad", "BiasDropoutGrad", "BufferUpdate",
        "DropoutGrad", "Dropout", "FlashAttentionGrad", "EinsumGrad"}) {
    const std::string answer =
        answer_of({type, {}, {real({2, 3}), real({2, 3})}, {{"equation", "i->i"}}});
    EXPECT_THAT(answer, HasSubstr(std::string("operator '") + type + "'"));
    EXPECT_THAT(answer, HasSubstr("expected"));
  }
  EXPECT_THAT(
      answer_of({"BatchNormalization", {random({2, 3}), random({3}), random({3})}, {real({2, 3})}}),
      HasSubstr("where 5 or more are expected"));
}

TEST(ExecHostileOps, updates_go_over_no_more_than_there_is) {
  const Tensor weight = random({1000});
  const Tensor one = random({1});
  const std::string wrong = "of another size than its weight's";
  EXPECT_THAT(answer_of({"AdamUpdate", {weight, weight, one, one}, {real({1})}}), HasSubstr(wrong));
  EXPECT_THAT(answer_of({"MomentumUpdate", {weight, one, weight}, {real({1})}}), HasSubstr(wrong));
}

TEST(ExecHostileOps, pools_read_no_images_that_are_not_there) {
  const Attributes window{{"kernel_shape", Integers{1, 1}}};
  for (const char* type : {"MaxPool", "AveragePool"}) {
    EXPECT_THAT(answer_of({type, {random({1, 1, 4, 4})}, {real({64, 9, 4, 4})}, window}),
                HasSubstr("makes 64 images of 9 channels of 1 of 1"));
  }
}

TEST(ExecHostileOps, dropout_keeps_the_shape) {
  const OneOp op{"Dropout", {random({2})}, {real({50, 50}), truth({50, 50})}, {}, true};
  EXPECT_THAT(answer_of(op), HasSubstr("of another shape than its input's"));
  EXPECT_THAT(answer_of({"DropoutGrad",
                         {random({2}), torch::ones({99}, torch::kBool)},
                         {real({2})},
                         {{"ratio", 0.5}}}),
              HasSubstr("a mask of another shape"));
}

TEST(ExecHostileOps, numbers_are_held_to_ranges) {
  const Tensor image = random({1, 4, 4, 4});
  const auto answer = [&](const char* type, const Attributes& attributes) {
    return answer_of({type, {image, random({4, 4, 1, 1})}, {real({1, 4, 4, 4})}, attributes});
  };
  EXPECT_THAT(answer("Conv", {{"strides", Integers{0, 0}}}), HasSubstr("'strides': 0 is not from"));
  EXPECT_THAT(answer("Conv", {{"pads", Integers{INT64_MAX, 0, 0, 0}}}), HasSubstr("'pads'"));
  EXPECT_THAT(answer("DepthToSpace", {{"blocksize", std::int64_t{0}}}), HasSubstr("'blocksize'"));
  EXPECT_THAT(answer("GroupNormalization", {{"num_groups", std::int64_t{0}}}),
              HasSubstr("'num_groups'"));
  EXPECT_THAT(answer("SplitGrad", {{"arrived", Integers{INT64_MAX}}}), HasSubstr("'arrived'"));
}

// ---- any ops, of numbers drawn

class OddOps {
 public:
  explicit OddOps(std::uint64_t seed) : rng_(seed) {}

  // Compiles and runs one; what it throws beside Errors, or does to memory, is the test's fault.
  void try_one() {
    GraphBuilder builder("odd");
    OpSpec op{.name = "op", .type = type()};
    const Shape common = shape();
    const std::size_t inputs = below(7);
    for (std::size_t i = 0; i < inputs; ++i) {
      op.inputs.push_back(add_input(builder, i, below(3) == 0 ? shape() : common));
    }
    add_attributes(op.attributes);
    std::vector<TensorSpec> outputs;
    for (std::size_t i = below(3) + 1; i-- > 0;) {
      outputs.push_back({.shape = below(3) == 0 ? shape() : common, .dtype = dtype()});
    }
    builder.add(op, outputs);
    const Graph graph = std::move(builder).build();
    try {
      interpret(graph, seeded_sources({.seed = 1}));
      ++computed_;
    } catch (const Error&) {
    }
  }
  int computed() const { return computed_; }

 private:
  std::size_t below(std::size_t count) { return rng_.below(count); }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  std::string type() {
    static const std::vector<std::string_view> types = kernel_types();
    return std::string(types[below(types.size())]);
  }
  Shape shape() {
    Shape result;
    for (std::size_t i = below(5); i-- > 0;) {
      result.push_back(one_of<std::int64_t>({1, 2, 3, 4, 4, 2, 0}));
    }
    return result;
  }
  DType dtype() {
    return one_of({DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kInt64, DType::kBool});
  }
  std::int64_t number() {
    return one_of<std::int64_t>({1, 0, 2, -1, 3, 4, -2, 7, 1, 2, -100, INT64_MAX, INT64_MIN});
  }

  TensorId add_input(GraphBuilder& builder, std::size_t i, const Shape& shape) {
    const TensorSpec spec{.shape = shape, .dtype = dtype()};
    OpSpec source{.name = fmt::format("x{}", i), .type = "input"};
    if (below(3) == 0) {
      source.type = "constant";
      Integers values;
      const std::int64_t count = below(10) == 0 ? 1 : count_elements(shape);
      for (std::int64_t k = count; k-- > 0;) values.push_back(number());
      source.attributes.set("value", values);
    }
    return builder.add(source, {spec})[0];
  }

  void add_attributes(Attributes& attributes) {
    for (const char* name :
         {"axis",       "batch_dims", "blocksize",     "count",        "end",
          "group",      "groups",     "hidden_size",   "ignore_index", "input",
          "is_causal",  "k",          "kv_num_heads",  "layout",       "mean_count",
          "num_groups", "num_heads",  "q_num_heads",   "row_offset",   "row_total",
          "size",       "start",      "training_mode", "transA",       "transB",
          "flattened",  "batch_axis", "time_axis",     "window"}) {
      if (below(30) == 0) attributes.set(name, number());
    }
    const std::size_t dims = below(4);
    for (const char* name :
         {"arrived", "axes", "begin", "begin_0", "dilations", "kernel_shape", "omitted_inputs",
          "output_padding", "pads", "perm", "region_begin", "region_shape", "split", "strides",
          "wanted", "scales", "starts", "ends"}) {
      if (below(20) != 0) continue;
      Integers list;
      for (std::size_t i = one_of({dims, dims, 2 * dims, below(6)}); i-- > 0;) {
        list.push_back(below(2) == 0 ? number() : 1);
      }
      attributes.set(name, list);
    }
    if (below(6) == 0) attributes.set("mode", one_of<std::string>({"edge", "wrap", "linear"}));
    if (below(6) == 0) attributes.set("reduction", one_of<std::string>({"add", "mul", "sum"}));
    if (below(6) == 0) attributes.set("direction", one_of<std::string>({"bidirectional", "x"}));
    attributes.set("equation", one_of<std::string>({"ij,jk->ik", "ii->i", ",", "->", "i..j->"}));
  }

  Rng rng_;
  int computed_ = 0;
};

TEST(ExecHostileOps, any_op_is_computed_or_refused) {
  OddOps ops(22);
  for (int i = 0; i < 4000; ++i) {
    SCOPED_TRACE(i);
    ASSERT_NO_THROW(ops.try_one());
  }
  EXPECT_GT(ops.computed(), 50);  // else they were too odd to reach a kernel
}

}  // namespace
}  // namespace emplace::exec
