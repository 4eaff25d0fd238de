// The parts of a placed model, run in a chain, compute what the whole does, bit for bit.
#include "io/onnx_parts.h"

#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/rng.h"

#include "exec/equal_bits.h"
#include "exec/small_models.h"
#include "interpreter/interpreter.h"
#include "io/file.h"
#include "io/onnx_writer.h"
#include "io/readers.h"
#include "support/command.h"
#include "zoo/registry.h"

namespace emplace::exec {
namespace {

using PartsJson = nlohmann::json;
using NamedTensors = std::map<std::string, torch::Tensor>;

// The writer calls an op's first output after the op, and the others with a number behind that.
std::string value_name(const Graph& graph, OpId op, std::size_t output) {
  return std::string(graph.op_name(op)) + (output == 0 ? "" : ":" + std::to_string(output));
}

NamedTensors values_of(const Graph& graph, const std::vector<torch::Tensor>& tensors) {
  NamedTensors values;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (std::size_t i = 0; i < graph.outputs(op).size(); ++i) {
      values[value_name(graph, op, i)] = tensors[graph.outputs(op)[i]];
    }
  }
  return values;
}

// The contents of constants, which the reader only keeps of small ones, are the original's; those
// of other sources are `others`.
SourceValue with_constants(const Graph& original, SourceValue others) {
  return [&original, others = std::move(others)](const Graph& graph, OpId op, std::size_t output) {
    if (graph.role(op) != OpRole::kConstant) return others(graph, op, output);
    return constant_value(original, original.find_op(graph.op_name(op)).value());
  };
}

// Runs the parts of a folder in the manifest's order, each given what the earlier ones gave and the
// whole's inputs and weights; what they gave.
class PartsChain {
 public:
  PartsChain(const emplace::testing::TemporaryFolder& folder, const Graph& original,
             const NamedTensors& whole)
      : folder_(folder),
        original_(original),
        whole_(whole),
        manifest_(PartsJson::parse(folder.read("parts/manifest.json"))) {
    for (const auto& input : manifest_["inputs"]) {
      const std::string name = input["name"];
      flowing_[name] = whole.at(name);
    }
    for (const auto& part : manifest_["parts"]) run(part);
  }

  const PartsJson& manifest() const { return manifest_; }
  const NamedTensors& flowing() const { return flowing_; }
  const std::multiset<std::string>& ops() const { return ops_; }

 private:
  void run(const PartsJson& part) {
    const std::string file = part["file"];
    const Graph graph = read_onnx(read_file(folder_.path("parts/" + file)), {}, file);
    const SourceValue sources =
        with_constants(original_, [&](const Graph& of, OpId op, std::size_t output) {
          const std::string name = value_name(of, op, output);
          return of.role(op) == OpRole::kInput ? flowing_.at(name) : whole_.at(name);
        });
    const NamedTensors values = values_of(graph, interpret(graph, sources));
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (!graph.is_source(op)) ops_.emplace(graph.op_name(op));
    }
    for (const auto& output : part["outputs"]) {
      const std::string name = output;
      flowing_[name] = values.at(name);
    }
  }

  const emplace::testing::TemporaryFolder& folder_;
  const Graph& original_;
  const NamedTensors& whole_;
  PartsJson manifest_;
  NamedTensors flowing_;
  std::multiset<std::string> ops_;
};

void expect_parts_compute_the_whole(const Graph& original, int devices, Rng& rng, bool in_blocks) {
  const std::string bytes = write_onnx(original);
  const Graph whole = read_onnx(bytes, {}, "whole");
  const NamedTensors values = values_of(
      whole,
      interpret(whole,
                with_constants(original, seeded_sources({.seed = 3, .low = -0.5, .high = 0.5}))));
  std::vector<DeviceId> placement;
  for (OpId op = 0; op < whole.num_ops(); ++op) {
    const auto block = static_cast<DeviceId>(op * 6 / whole.num_ops() % devices);
    placement.push_back(in_blocks ? block : static_cast<DeviceId>(rng.below(devices)));
  }
  PlacedOnnx placed{.source = {.bytes = bytes}, .graph = "whole", .devices = {}, .device_of = {}};
  for (int i = 0; i < devices; ++i) placed.devices.push_back("gpu" + std::to_string(i));
  placed.device_of = [&](std::string_view name) { return placement[whole.find_op(name).value()]; };
  const emplace::testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("parts"));
  const OnnxPartsSummary summary = write_onnx_parts(placed, folder.path("parts"));
  const PartsChain chain(folder, original, values);

  EXPECT_EQ(summary.parts, chain.manifest()["parts"].size());
  EXPECT_GT(summary.parts, 1U);
  for (const auto& [name, value] : chain.flowing()) {
    EXPECT_TRUE(equal_bits(value, values.at(name))) << name;
  }
  for (const auto& output : chain.manifest()["outputs"]) {
    EXPECT_TRUE(chain.flowing().contains(output["name"])) << output["name"];
  }
  std::multiset<std::string> ops;
  for (OpId op = 0; op < whole.num_ops(); ++op) {
    if (!whole.is_source(op)) ops.emplace(whole.op_name(op));
  }
  EXPECT_EQ(chain.ops(), ops);
}

class OnnxPartsOf : public ::testing::TestWithParam<const char*> {};

TEST_P(OnnxPartsOf, compute_what_the_whole_computes) {
  const Graph original = zoo::build_model(std::string(GetParam()) + ",training=false");
  Rng rng(23);
  expect_parts_compute_the_whole(original, 3, rng, true);
  expect_parts_compute_the_whole(original, 3, rng, false);
}

INSTANTIATE_TEST_SUITE_P(Zoo, OnnxPartsOf, ::testing::ValuesIn(kSmallModels),
                         [](const auto& parameter) { return name_of_model(parameter.param); });

}  // namespace
}  // namespace emplace::exec
