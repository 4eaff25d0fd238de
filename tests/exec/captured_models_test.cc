// Steps that were captured from PyTorch: put into ONNX's operators they compute what libtorch's own
// operators do, and divided they compute the same. The captures are made by
// tests/python/torch/write_captures.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tensor/captured_operators.h"
#include "tensor/decompose.h"
#include "tensor/methods/all.h"
#include "tensor/topology.h"

#include "exec/aten_reference.h"
#include "exec/partition_check.h"
#include "exec/sources.h"
#include "io/readers.h"
#include "support/captures.h"

namespace emplace {
namespace {

constexpr const char* kTinySteps[] = {"bert-tiny", "gpt2-tiny",      "resnet18-tiny",
                                      "lstm-tiny", "inception-tiny", "gnmt-tiny"};

const exec::InterpretOptions kUpdated{.updates = true};

class CapturedModel : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    captured_ = read_model(capture_path(GetParam())).graph;
    translated_ = std::make_unique<TranslatedGraph>(translate_captured(*captured_));
  }

  const Graph& captured() const { return *captured_; }
  const TranslatedGraph& translated() const { return *translated_; }

  // The captured step as libtorch computes it, from the sources of the translated one. What is
  // drawn is taken from `results`.
  std::vector<torch::Tensor> reference(const exec::SourceValue& sources,
                                       const std::vector<torch::Tensor>& results) const {
    const Graph& graph = captured();
    std::vector<torch::Tensor> values(graph.num_tensors());
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      const auto outputs = graph.outputs(op);
      if (graph.is_source(op)) {
        const auto same = translated().graph.find_op(graph.op_name(op));
        const bool whole = graph.dtype(outputs[0]) == DType::kInt64;
        values[outputs[0]] =
            sources(translated().graph, *same, 0).to(whole ? torch::kLong : torch::kDouble);
        continue;
      }
      if (graph.phase(op) == Phase::kUpdate) continue;
      if (graph.type(op) == "bernoulli_") {
        values[outputs[0]] = results[*translated().tensors[outputs[0]]];
        continue;
      }
      exec::AtenCall call{graph, op, {}};
      for (const TensorId tensor : graph.inputs(op)) call.inputs.push_back(values[tensor]);
      const exec::Tensors made = exec::compute_aten(call);
      EXPECT_EQ(made.size(), outputs.size()) << graph.op_name(op);
      for (std::size_t i = 0; i < outputs.size(); ++i) values[outputs[i]] = made[i];
    }
    return values;
  }

 private:
  std::shared_ptr<const Graph> captured_;
  std::unique_ptr<TranslatedGraph> translated_;
};

TEST_P(CapturedModel, computes_in_other_operators_what_libtorch_computes) {
  const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
  const auto results = exec::interpret(translated().graph, sources);
  const auto values = reference(sources, results);
  int compared = 0;
  for (TensorId tensor = 0; tensor < captured().num_tensors(); ++tensor) {
    const auto same = translated().tensors[tensor];
    if (!same || captured().is_source(captured().producer(tensor))) continue;
    ++compared;
    const std::string_view name = captured().op_name(captured().producer(tensor));
    const torch::Tensor wanted = values[tensor].to(torch::kDouble);
    const torch::Tensor found = results[*same].to(torch::kDouble);
    ASSERT_EQ(wanted.sizes(), found.sizes()) << name;
    EXPECT_TRUE(torch::allclose(wanted, found, 1e-8, 1e-9)) << name;
  }
  EXPECT_GT(compared, static_cast<int>(captured().num_ops()) / 4);
}

TEST_P(CapturedModel, has_descriptions_of_all_its_operators) {
  const Graph graph = decompose(translated().graph);
  const Descriptions descriptions(graph);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op)) continue;
    EXPECT_NE(descriptions[op], nullptr) << graph.op_name(op) << " (" << graph.type(op) << ")";
  }
}

TEST_P(CapturedModel, computes_the_same_in_parts) {
  const auto graph = std::make_shared<const Graph>(decompose(translated().graph));
  const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
  const auto values = exec::interpret(*graph, sources, kUpdated);
  const PartitionInput input(*graph);
  for (const int count : {2, 3, 8}) {
    ClusterSpec spec;
    spec.name = "equal";
    for (int i = 0; i < count; ++i) {
      spec.devices.push_back(
          {.name = fmt::format("gpu{}", i), .kind = "v100", .memory = 1LL << 34});
    }
    spec.links.push_back({.bandwidth = 10'000'000'000, .latency = 5000});
    const auto problem = compile(graph, std::make_shared<const Cluster>(std::move(spec)));
    const WorkerDevices on = workers_on(*problem);
    for (const char* method : {"data-parallel", "tofu", "all-row", "fsdp", "fsdp(hold=true)",
                               "zero", "zero(gradients=true)"}) {
      SCOPED_TRACE(fmt::format("{} on {}", method, count));
      PartitionContext context(input, problem, on);
      const Plan plan =
          all_partition_methods().make(MethodSpec::parse(method))->find(context, {}, Rng(1));
      if (!expect_same(*graph, input.descriptions, plan, sources, values, kUpdated)) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, CapturedModel, ::testing::ValuesIn(kTinySteps));

// Without attributes only what needs none is another operator.
TEST(CapturedModel, without_attributes_stays_as_it_is_where_they_matter) {
  const Model model = read_model(capture_path("resnet50-b32"));
  const Graph graph = translate_captured(*model.graph).graph;
  const auto count = [&](std::string_view type) {
    int found = 0;
    for (OpId op = 0; op < graph.num_ops(); ++op) found += graph.type(op) == type ? 1 : 0;
    return found;
  };
  EXPECT_EQ(count("convolution"), 53);
  EXPECT_EQ(count("Conv"), 0);
  EXPECT_EQ(count("Relu"), 49);
}

}  // namespace
}  // namespace emplace
