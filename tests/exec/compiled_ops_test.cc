// Whole training steps through compiled ops: in float32, with and without what forward ops keep,
// and which of their ops have no native kernel.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "exec/run_op.h"
#include "zoo/registry.h"

namespace emplace::exec {
namespace {

struct Step {
  const char* model;
  // Where few examples are normalised together, small differences grow from op to op.
  bool grows = false;
};

constexpr Step kSteps[] = {
    {"resnet-50:batch=4,image=32", true},
    {"inception-v3:batch=2,image=75", true},
    {"cifar-10-cnn:batch=2"},
    {"gnmt-2:batch=2,hidden=8,sequence=3,vocabulary=11"},
    {"bert-base:batch=2,sequence=4,layers=2,hidden=16,heads=2,vocabulary=17,positions=8"},
    {"gpt2-small:batch=2,sequence=4,layers=2,hidden=16,heads=2,vocabulary=17,positions=8,"
     "attention=fused"},
    {"llama3-8b:batch=2,sequence=4,layers=2,hidden=16,heads=4,kv_heads=2,intermediate=12,"
     "vocabulary=17"},
    {"gpt-oss-20b:batch=1,sequence=4,layers=2,hidden=16,heads=4,kv_heads=2,head_size=4,window=2,"
     "intermediate=12,vocabulary=17,experts=4,chosen=2,expert_parts=2"},
    {"sdxl-unet:batch=1,image=4,width=8,head_size=4,prompt=3,prompt_width=6,deep=1,groups=2"},
    {"whisper-tiny:batch=1,frames=8,bands=3,target=4,layers=2,hidden=8,heads=2,vocabulary=17"},
    {"dlrm:batch=2,max_rows=10,width=8"},
};

InterpretOptions in_type(torch::ScalarType type) {
  return {.target = {.real = type, .narrow = type, .seed = 3}, .updates = true};
}

// Its updates.
std::vector<OpId> updates_of(const Graph& step) {
  std::vector<OpId> result;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (step.phase(op) == Phase::kUpdate && !step.is_source(op)) result.push_back(op);
  }
  return result;
}

double size_of(const Tensor& x) {
  return x.to(torch::kDouble).norm().item<double>();
}

class ExecStep : public ::testing::TestWithParam<Step> {};

TEST_P(ExecStep, computes_in_float32_what_it_does_in_float64) {
  const Graph step = zoo::build_model(GetParam().model);
  const auto run_in = [&](torch::ScalarType type) {
    const InterpretOptions options = in_type(type);
    return interpret(step, training_sources(5, options.target), options);
  };
  const auto wide = run_in(torch::kDouble);
  const auto found = run_in(torch::kFloat);
  // Some gradients are nothing but rounding: they count by the largest.
  double largest = 0;
  for (const OpId op : updates_of(step)) {
    largest = std::max(largest, size_of(wide[step.inputs(op)[1]]));
  }
  const double tolerance = GetParam().grows ? 1 : 1e-4;
  for (const OpId op : updates_of(step)) {
    const TensorId gradient = step.inputs(op)[1];
    ASSERT_EQ(found[gradient].scalar_type(), torch::kFloat);
    EXPECT_LT(size_of(found[gradient].to(torch::kDouble) - wide[gradient]),
              tolerance * std::max(size_of(wide[gradient]), 1e-3 * largest))
        << step.op_name(op);
    EXPECT_TRUE(found[step.inputs(op)[0]].isfinite().all().item<bool>()) << step.op_name(op);
  }
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (step.type(op) != "OnesLike") continue;
    const double loss = wide[step.inputs(op)[0]].item<double>();
    EXPECT_NEAR(found[step.inputs(op)[0]].item<double>(), loss, 1e-4 * std::abs(loss));
  }
}

// One op in float32, from what the float64 step gives it.
Tensors run_alone(const Graph& step, OpId op, const Tensors& wide) {
  const InterpretOptions options = in_type(torch::kFloat);
  OpTarget target = options.target;
  target.training = true;
  Tensors inputs;
  for (const TensorId tensor : step.inputs(op)) {
    inputs.push_back(wide[tensor].to(scalar_type(step.dtype(tensor), target)));
  }
  Tensors outputs(step.outputs(op).size());
  OpStep once{.inputs = inputs, .outputs = outputs};
  compile_op(step, op, target).run(once);
  return outputs;
}

TEST_P(ExecStep, has_ops_that_compute_in_float32_what_they_do_in_float64) {
  const Graph step = zoo::build_model(GetParam().model);
  InterpretOptions options = in_type(torch::kDouble);
  options.updates = false;
  const auto wide = interpret(step, training_sources(5, options.target), options);
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (step.is_source(op) || step.phase(op) == Phase::kUpdate) continue;
    double given = 0;
    for (const TensorId tensor : step.inputs(op)) given = std::max(given, size_of(wide[tensor]));
    const Tensors found = run_alone(step, op, wide);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Tensor expected = wide[step.outputs(op)[i]].to(torch::kDouble);
      // What is left of a sum that cancels is rounding.
      EXPECT_LE(size_of(found[i].to(torch::kDouble) - expected),
                1e-4 * std::max(size_of(expected), 1e-2 * given))
          << step.op_name(op) << " (" << step.type(op) << ")";
    }
  }
}

TEST_P(ExecStep, computes_the_same_with_and_without_by_products) {
  const Graph step = zoo::build_model(GetParam().model);
  InterpretOptions options = in_type(torch::kDouble);
  const auto sources = training_sources(5, options.target);
  const auto with = interpret(step, sources, options);
  options.keep = false;
  const auto without = interpret(step, sources, options);
  for (TensorId tensor = 0; tensor < step.num_tensors(); ++tensor) {
    EXPECT_TRUE(at::allclose(with[tensor], without[tensor], 1e-12, 1e-12))
        << step.op_name(step.producer(tensor));
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ExecStep, ::testing::ValuesIn(kSteps), [](const auto& test) {
  const std::string_view text = test.param.model;
  std::string name(text.substr(0, text.find(':')));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Losses are about those of float64.
TEST(ExecCompiled, steps_run_in_16_bits) {
  for (const Step& given : kSteps) {
    if (given.grows) continue;
    SCOPED_TRACE(given.model);
    const Graph step = zoo::build_model(fmt::format("{},dtype=bfloat16", given.model));
    const auto loss_in = [&](const OpTarget& target) {
      const InterpretOptions options{.target = target};
      const auto values = interpret(step, training_sources(5, target), options);
      double sum = 0;
      for (OpId op = 0; op < step.num_ops(); ++op) {
        if (step.type(op) == "OnesLike") sum += values[step.inputs(op)[0]].item<double>();
      }
      for (const OpId op : updates_of(step)) {
        EXPECT_TRUE(values[step.inputs(op)[1]].isfinite().all().item<bool>());
      }
      return sum;
    };
    const double expected = loss_in({.real = torch::kDouble, .narrow = torch::kDouble});
    EXPECT_NEAR(loss_in({.real = torch::kFloat, .narrow = torch::kBFloat16}), expected,
                0.02 * expected);
  }
}

TEST(ExecCompiled, by_products_are_found_where_forward_ops_are) {
  const Graph step = zoo::build_model("resnet-50:batch=2,image=32");
  int keepers = 0;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    const std::string_view type = step.type(op);
    const OpId keeper = keeper_of(step, op);
    if (type != "BatchNormalizationGrad" && type != "MaxPoolGrad") {
      EXPECT_EQ(keeper, kNoOp);
      continue;
    }
    ++keepers;
    ASSERT_NE(keeper, kNoOp);
    EXPECT_LT(keeper, op);
    EXPECT_EQ(fmt::format("{}Grad", step.type(keeper)), type);
    EXPECT_TRUE(step.op_name(op).starts_with(step.op_name(keeper)));
  }
  EXPECT_EQ(keepers, 54);
}

void add_slow_types(const zoo::ModelInfo& info, std::set<std::string>& slow) {
  const Graph graph = info.build({{"batch", "2"}}, {});
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op)) continue;
    if (!compile_op(graph, op, {.training = true}).native) slow.emplace(graph.type(op));
  }
}

// A type that is added here makes every run of its models slower than it need be.
TEST(ExecCompiled, every_op_of_every_step_is_native) {
  std::set<std::string> slow;
  for (const zoo::ModelInfo& info : zoo::models()) add_slow_types(info, slow);
  for (const zoo::ModelInfo& info : zoo::families()) add_slow_types(info, slow);
  EXPECT_EQ(slow, std::set<std::string>{});
}

TEST(ExecCompiled, results_lie_in_memory_of_their_own_unless_the_op_shows_another) {
  const Tensor x = random({3, 4});
  const Tensors inputs{x};
  const auto result_of = [&](const std::string& type, bool view, const Attributes& attributes) {
    GraphBuilder builder("views");
    const auto source = builder.add({.name = "x", .type = "parameter"}, {real({3, 4})});
    const Shape shape = type == "Transpose" ? Shape{4, 3} : Shape{3, 4};
    builder.add(
        {.name = "op", .type = type, .inputs = source, .view = view, .attributes = attributes},
        {real(shape)});
    const Graph graph = std::move(builder).build();
    const OpTarget target{.real = torch::kDouble, .narrow = torch::kDouble};
    Tensors outputs(1);
    OpStep step{.inputs = inputs, .outputs = outputs};
    compile_op(graph, *graph.find_op("op"), target).run(step);
    return outputs[0];
  };
  EXPECT_TRUE(result_of("Identity", true, {}).is_alias_of(x));
  for (const char* type : {"Identity", "Expand", "Transpose", "Sum", "Cast"}) {
    const Tensor result = result_of(type, false, {});
    EXPECT_FALSE(result.is_alias_of(x)) << type;
    EXPECT_TRUE(result.is_contiguous()) << type;
  }
}

}  // namespace
}  // namespace emplace::exec
