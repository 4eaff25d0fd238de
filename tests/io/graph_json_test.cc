// emplace.graph/1 in and out.
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "graph/graph_builder.h"

#include "io/file.h"
#include "io/graph_json_writer.h"
#include "io/readers.h"
#include "io/same_graph.h"
#include "support/captures.h"
#include "support/error_text.h"
#include "support/random_problem.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Graph read_op_with(const std::string& attributes) {
  return read_graph_json(fmt::format(
      R"({{"format": "emplace.graph/1", "name": "g", "tensors": [{{"bytes": 4}}],
          "ops": [{{"name": "conv", "type": "Conv", "inputs": [], "outputs": [0],
                    "attributes": {}}}]}})",
      attributes));
}

std::string error_of_op_with(const std::string& attributes) {
  try {
    read_op_with(attributes);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(GraphJson, reads_attributes_of_every_kind) {
  const Graph graph = read_op_with(
      R"({"strides": [2, 3], "epsilon": 1e-05, "mode": "linear", "axis": -1, "alpha": 2.0,
          "scales": [1.0, 2.5], "mixed": [1, 2.5], "none": [], "least": -1e999})");
  const Attributes& attributes = graph.attributes(0);
  EXPECT_THAT(attributes.integers("strides"), ElementsAre(2, 3));
  EXPECT_EQ(*attributes.find("epsilon"), AttributeValue(1e-05));
  EXPECT_EQ(*attributes.find("mode"), AttributeValue("linear"));
  EXPECT_EQ(*attributes.find("axis"), AttributeValue(std::int64_t{-1}));
  EXPECT_EQ(*attributes.find("alpha"), AttributeValue(2.0));
  EXPECT_EQ(*attributes.find("scales"), AttributeValue(std::vector<double>{1, 2.5}));
  EXPECT_EQ(*attributes.find("mixed"), AttributeValue(std::vector<double>{1, 2.5}));
  EXPECT_EQ(*attributes.find("none"), AttributeValue(std::vector<std::int64_t>()));
  EXPECT_EQ(*attributes.find("least"), AttributeValue(-std::numeric_limits<double>::infinity()));
}

TEST(GraphJson, names_op_and_attribute_where_one_is_wrong) {
  const auto expect = [](const std::string& attributes, const std::string& message) {
    EXPECT_THAT(error_of_op_with(attributes), HasSubstr("op 'conv': attributes: " + message))
        << attributes;
  };
  expect(R"({"strides": [2, "x"]})", "strides: expected a list of numbers");
  expect(R"({"strides": [[2]]})", "strides: expected a list of numbers");
  expect(R"({"strides": {"x": 2}})", "strides: expected a number, a string or a list of numbers");
  expect(R"({"flag": true})", "flag: expected a number, a string or a list of numbers");
  expect(R"({"axis": 99999999999999999999})", "axis: ");
  expect(R"({"epsilon": 1.})", "epsilon: '1.' is not a number");
  expect(R"({"axis": 1, "axis": 2})", "'axis' occurs twice");
  expect(R"({"": 1})", "one has no name");
  expect("[1]", "expected an object");
}

// A graph of one op and one tensor, with fields added to each object.
std::string error_with_fields(const std::string& top, const std::string& tensor,
                              const std::string& op) {
  try {
    read_graph_json(fmt::format(
        R"({{{}"format": "emplace.graph/1", "name": "g", "tensors": [{{{}"bytes": 4}}],
            "ops": [{{{}"name": "mm", "type": "Gemm", "inputs": [], "outputs": [0]}}]}})",
        top, tensor, op));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(GraphJson, unknown_fields_are_errors_that_name_the_object_and_the_nearest_field) {
  EXPECT_EQ(error_with_fields("", "", ""), "");
  EXPECT_THAT(error_with_fields("", "", R"("colocated": "a", )"),
              StartsWith("op 'mm': unknown field 'colocated' (did you mean 'colocate'?); "
                         "expected one of: name, type, inputs"));
  EXPECT_THAT(error_with_fields("", "", R"("flop": {"deep": [1, 2]}, )"),
              StartsWith("op 'mm': unknown field 'flop' (did you mean 'flops'?)"));
  EXPECT_THAT(error_with_fields("", R"("memory": 4, )", ""),
              StartsWith("tensor 0: unknown field 'memory'"));
  EXPECT_THAT(error_with_fields("", R"("byte": 4, )", ""),
              StartsWith("tensor 0: unknown field 'byte' (did you mean 'bytes'?); "
                         "expected one of: shape, dtype, bytes, memory_bytes"));
  EXPECT_THAT(error_with_fields(R"("sources": "x", )", "", ""),
              StartsWith("top level: unknown field 'sources' (did you mean 'source'?); expected "
                         "one of: format, name, source, measured_step_us, tensors, ops"));
}

TEST(GraphJson, an_op_whose_name_is_misspelt_is_named_by_its_index) {
  try {
    read_graph_json(R"({"format": "emplace.graph/1", "tensors": [],
                        "ops": [{"nmae": "a", "type": "x"}]})");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("op 0: unknown field 'nmae' (did you mean 'name'?)"));
  }
}

TEST(GraphJson, a_misspelt_list_is_named_before_a_missing_one) {
  try {
    read_graph_json(R"({"format": "emplace.graph/1", "tensor": [], "ops": []})");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown field 'tensor' (did you mean 'tensors'?)"));
  }
}

TEST(GraphJson, files_of_other_formats_are_known_by_their_format) {
  try {
    read_graph_json(R"({"assignment": {"a": "gpu0"}, "format": "emplace.placement/1"})");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "format: expected \"emplace.graph/1\" instead of \"emplace.placement/1\"");
  }
}

TEST(GraphJson, skips_fields_for_other_programs) {
  EXPECT_EQ(error_with_fields(R"("x-tool": {"a": [1, {"b": null}]}, )", R"("x-note": "y", )",
                              R"("x-": [], "x-id": 7, )"),
            "");
  EXPECT_EQ(error_with_fields(R"("measured_step_us": {"h200": 12}, )", "", ""), "");
}

// A graph with something of everything.
class AnyGraph {
 public:
  explicit AnyGraph(Rng& rng) : rng_(rng), builder_(text(), rng.chance(0.5) ? text() : "") {}

  Graph make() {
    const std::uint64_t ops = 1 + rng_.below(20);
    for (std::uint64_t i = 0; i < ops; ++i) add_op(i);
    return std::move(builder_).build();
  }

 private:
  std::string text() {
    static const std::vector<std::string> kTexts{"plain",        "a.b.c", "with \"quotes\"",
                                                 "back\\slash",  "a b",   "\u00e4\u4e2d",
                                                 "/enc/layer.0", "~",     "\U0001F600"};
    return rng_.pick<std::string>(kTexts);
  }
  std::int64_t number() {
    static const std::vector<std::int64_t> kNumbers{0,
                                                    1,
                                                    -1,
                                                    7,
                                                    1000,
                                                    std::numeric_limits<std::int64_t>::max(),
                                                    std::numeric_limits<std::int64_t>::min()};
    return rng_.pick<std::int64_t>(kNumbers);
  }
  double real() {
    static const std::vector<double> kReals{
        0,      -0.0,   1, 2, 1e-5, 0.1, 1e300, 1e15, -3.5, std::numeric_limits<double>::infinity(),
        5e-324, 1.0 / 3};
    return rng_.pick<double>(kReals);
  }
  std::int64_t size() { return std::abs(number() % (std::int64_t{1} << 50)); }

  Attributes attributes() {
    Attributes result;
    for (std::uint64_t i = rng_.below(4); i > 0; --i) {
      switch (rng_.below(5)) {
        case 0:
          result.set(text(), number());
          break;
        case 1:
          result.set(text(), real());
          break;
        case 2:
          result.set(text(), text());
          break;
        case 3:
          result.set(text(), std::vector<std::int64_t>(rng_.below(4), number()));
          break;
        default:
          result.set(text(), std::vector<double>(1 + rng_.below(3), real()));
      }
    }
    return result;
  }

  TensorSpec tensor() {
    TensorSpec spec;
    if (rng_.chance(0.5)) {
      spec.bytes = size();
    } else {
      for (std::uint64_t i = rng_.below(4); i > 0; --i) {
        spec.shape.push_back(static_cast<std::int64_t>(rng_.below(100)));
      }
      static const std::vector<DType> kTypes{DType::kFloat32, DType::kInt64, DType::kBool,
                                             DType::kInt4, DType::kBFloat16};
      spec.dtype = rng_.pick<DType>(kTypes);
    }
    if (rng_.chance(0.3)) spec.memory_bytes = size();
    return spec;
  }

  void add_op(std::uint64_t index) {
    OpSpec op{.name = fmt::format("{}{}", text(), index),
              .type = rng_.chance(0.3) ? "parameter" : text()};
    for (std::uint64_t i = builder_.num_tensors() > 0 ? rng_.below(4) : 0; i > 0; --i) {
      op.inputs.push_back(static_cast<TensorId>(rng_.below(builder_.num_tensors())));
    }
    op.phase = static_cast<Phase>(rng_.below(3));
    if (rng_.chance(0.5)) op.flops = size();
    if (rng_.chance(0.5)) op.bytes_moved = size();
    static const std::vector<Decimal> kTimes{
        {412, -1}, {5, -4}, {0, 0}, {1, 1}, {3, 0}, {1, -30}, {7, 20}, {123456789012345678, -9}};
    for (std::uint64_t i = rng_.below(3); i > 0; --i) {
      op.time_us.emplace_back(text(), rng_.pick<Decimal>(kTimes));
    }
    if (rng_.chance(0.3)) op.persistent_bytes = size();
    if (rng_.chance(0.3)) op.temp_bytes = size();
    op.view = !op.inputs.empty() && rng_.chance(0.3);
    if (rng_.chance(0.5)) op.module = text();
    if (!names_.empty() && rng_.chance(0.3)) op.after.push_back(rng_.pick<std::string>(names_));
    if (rng_.chance(0.3)) op.colocate = text();
    if (rng_.chance(0.3)) op.devices = {text(), text()};
    op.attributes = attributes();
    names_.push_back(op.name);
    std::vector<TensorSpec> outputs(rng_.below(3));
    for (TensorSpec& output : outputs) output = tensor();
    builder_.add(std::move(op), outputs);
  }

  Rng& rng_;
  GraphBuilder builder_;
  std::vector<std::string> names_;
};

TEST(GraphJsonWriter, writes_what_reads_back_as_the_same_graph) {
  Rng rng(7);
  for (int i = 0; i < 500 && !::testing::Test::HasFailure(); ++i) {
    const Graph graph = AnyGraph(rng).make();
    const std::string text = write_graph_json(graph);
    SCOPED_TRACE(text);
    expect_same_graph(read_graph_json(text), graph);
  }
}

TEST(GraphJsonWriter, writes_random_problems_graphs_and_is_stable) {
  Rng rng(8);
  for (int i = 0; i < 100 && !::testing::Test::HasFailure(); ++i) {
    const auto problem = random_problem(rng);
    const std::string text = write_graph_json(problem->graph());
    const Graph read = read_graph_json(text);
    expect_same_graph(read, problem->graph());
    // Times may be written as 3.0 at first.
    EXPECT_EQ(write_graph_json(read_graph_json(write_graph_json(read))), write_graph_json(read));
  }
}

TEST(GraphJsonWriter, writes_times_as_the_exact_decimals_that_they_are) {
  GraphBuilder builder("g");
  builder.add_op({.name = "a", .type = "x", .time_us = {{"gpu", {412, -1}}, {"cpu", {5, -4}}}});
  builder.add_op({.name = "b", .type = "x", .time_us = {{"gpu", {7, 0}}, {"cpu", {7, 3}}}});
  const std::string text = write_graph_json(std::move(builder).build());
  EXPECT_THAT(text, HasSubstr(R"("time_us": {"gpu": 41.2, "cpu": 0.0005})"));
  EXPECT_THAT(text, HasSubstr(R"("time_us": {"gpu": 7, "cpu": 7e3})"));
}

TEST(GraphJsonWriter, refuses_what_json_cannot_hold) {
  GraphBuilder builder("g");
  builder.add_op({.name = "a",
                  .type = "x",
                  .attributes = {{"bad", std::numeric_limits<double>::quiet_NaN()}}});
  const Graph graph = std::move(builder).build();
  try {
    write_graph_json(graph);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("op 'a': attributes: bad"));
  }
}

TEST(GraphJsonWriter, writes_captured_graphs_back) {
  for (const char* name : kCaptures) {
    SCOPED_TRACE(name);
    const Graph graph = read_graph_json(read_file(capture_path(name)));
    expect_same_graph(read_graph_json(write_graph_json(graph)), graph);
  }
}

TEST(GraphJsonWriter, writes_every_zoo_model_back) {
  for (const zoo::ModelInfo& info : zoo::models()) {
    SCOPED_TRACE(info.name);
    const Graph graph = zoo::build_model("zoo:" + info.name);
    expect_same_graph(read_graph_json(write_graph_json(graph)), graph);
  }
}

TEST(ReadModel, builds_zoo_models_with_the_options_of_their_step) {
  const auto backward_ops = [](const Graph& graph) {
    std::uint32_t count = 0;
    for (OpId op = 0; op < graph.num_ops(); ++op) count += graph.phase(op) == Phase::kBackward;
    return count;
  };
  const auto has_moments = [](const Graph& graph) {
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.type(op) == "AdamUpdate") return true;
    }
    return false;
  };
  const std::string forward = "zoo:alexnet:batch=2,training=false";
  EXPECT_EQ(backward_ops(*read_model(forward).graph), 0U);
  ReadOptions options;
  options.training = true;
  EXPECT_GT(backward_ops(*read_model(forward, options).graph), 0U);
  EXPECT_GT(backward_ops(*read_model("zoo:alexnet:", options).graph), 0U);
  EXPECT_FALSE(has_moments(*read_model("zoo:alexnet").graph));
  // Left at its default, the optimizer is the model's own.
  EXPECT_TRUE(has_moments(*read_model("zoo:alexnet:optimizer=adam", options).graph));
  options.training_options.optimizer = Optimizer::kAdam;
  options.optimizer_chosen = true;
  EXPECT_TRUE(has_moments(*read_model("zoo:alexnet", options).graph));
}

TEST(ReadModel, refuses_symbolic_dimensions_of_zoo_models) {
  ReadOptions options;
  options.dims["batch"] = 4;
  try {
    read_model("zoo:alexnet", options);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("zoo:alexnet: has no symbolic dimension 'batch'"));
  }
}

TEST(GraphJson, refuses_a_field_that_is_given_twice) {
  const auto refusal = [](const std::string& op) {
    return error_text([&] {
      read_graph_json(R"({"format": "emplace.graph/1", "tensors": [{"bytes": 4}], "ops": [)" + op +
                      "]}");
    });
  };
  EXPECT_EQ(refusal(R"({"name": "a", "type": "mm", "outputs": [0]})"), "");
  EXPECT_EQ(refusal(R"({"name": "a", "type": "mm", "type": "add", "outputs": [0]})"),
            "op 'a': type: is given twice");
}

TEST(GraphJson, refuses_names_shapes_and_sizes_beyond_the_limits) {
  const auto refusal = [](const std::string& name, const std::string& tensor) {
    return error_text([&] {
      read_graph_json(R"({"format": "emplace.graph/1", "tensors": [)" + tensor +
                      R"(], "ops": [{"name": ")" + name + R"(", "type": "mm", "outputs": [0]}]})");
    });
  };
  const std::string tensor = R"({"bytes": 4})";
  EXPECT_EQ(refusal(std::string(16'384, 'a'), tensor), "");
  EXPECT_THAT(refusal(std::string(16'385, 'a'), tensor), HasSubstr("a name has at most 16384"));
  EXPECT_THAT(refusal("a\\u0007", tensor), HasSubstr("'a\\x07' has a control character"));
  std::string dims = "1";
  for (int i = 0; i < 64; ++i) dims += ", 1";
  EXPECT_THAT(refusal("a", R"({"dtype": "float32", "shape": [)" + dims + "]}"),
              HasSubstr("a tensor has at most 64"));
  EXPECT_THAT(refusal("a", R"({"dtype": "float32", "shape": [0, 4611686018427387904]})"),
              HasSubstr("dimension 4611686018427387904 is too large"));
}

}  // namespace
}  // namespace emplace
