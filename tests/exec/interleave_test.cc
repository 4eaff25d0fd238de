// Gates that lie in one matrix are told apart: the step computes the same, also in parts, and moves
// less.
#include "tensor/interleave.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "graph/training.h"

#include "tensor/captured_operators.h"
#include "tensor/decompose.h"
#include "tensor/methods/all.h"
#include "tensor/topology.h"

#include "exec/partition_check.h"
#include "exec/sources.h"
#include "io/readers.h"
#include "support/captures.h"

namespace emplace {
namespace {

// How queries, keys and values come out of one product.
enum class Packed {
  kSplit,    // a Split, as linear layers of PyTorch are exported
  kByHeads,  // as timm's vision transformers: a dimension of their own and heads, then by number
  kStacked,  // as PyTorch 2's MultiheadAttention: a dimension of their own, which comes first
};

const std::map<std::string, Packed> kPacked{
    {"queries, keys and values in one product", Packed::kSplit},
    {"queries, keys and values by heads", Packed::kByHeads},
    {"queries, keys and values in a stack", Packed::kStacked}};

const std::string kGated[] = {
    "queries, keys and values in one product",
    "queries, keys and values by heads",
    "queries, keys and values in a stack",
    "zoo:stacked-rnn:layers=2,sequence=3,hidden=12,input=8,classes=10,batch=6",
    "zoo:gpt2:layers=2,hidden=16,heads=4,sequence=6,batch=4,vocabulary=20",
    "zoo:vit-b-16:layers=2,hidden=16,heads=4,image=8,patch=4,classes=10,batch=4",
    capture_path("lstm-tiny"),
};

class PackedAttention {
 public:
  PackedAttention(Packed how, std::int64_t batch, std::int64_t sequence, std::int64_t width)
      : how_(how), batch_(batch), sequence_(sequence), width_(width) {}

  Graph step() && {
    TensorId x = add("x", "input", {}, states());
    x = add("in", "MatMul", {x, weights("w", {width_, width_})}, states());
    for (const std::string layer : {"0", "1"}) x = attend(layer, x);
    add("loss", "ReduceMean", {x}, {}, {{"keepdims", std::int64_t{0}}});
    return decompose(training_step(std::move(builder_).build(), {}));
  }

 private:
  static constexpr std::int64_t kHeads = 4;

  Shape states() const { return {batch_, sequence_, width_}; }

  TensorId add(const std::string& name, const std::string& type, std::vector<TensorId> inputs,
               Shape shape, Attributes attributes = {}) {
    return builder_.add({.name = name,
                         .type = type,
                         .inputs = std::move(inputs),
                         .attributes = std::move(attributes)},
                        {{.shape = std::move(shape), .dtype = DType::kFloat32}})[0];
  }
  TensorId weights(const std::string& name, Shape shape) {
    return add(name, "parameter", {}, std::move(shape));
  }

  TensorId attend(const std::string& layer, TensorId x) {
    const Shape all{batch_, sequence_, 3 * width_};
    TensorId packed =
        add("qkv" + layer, "MatMul", {x, weights("qkv.w" + layer, {width_, 3 * width_})}, all);
    packed = add("bias" + layer, "Add", {weights("qkv.b" + layer, {3 * width_}), packed}, all);
    std::vector<TensorId> parts = how_ == Packed::kSplit     ? split(layer, packed)
                                  : how_ == Packed::kByHeads ? by_heads(layer, packed)
                                                             : stacked(layer, packed);
    const bool heads = how_ == Packed::kByHeads;
    const Shape scores =
        heads ? Shape{batch_, kHeads, sequence_, sequence_} : Shape{batch_, sequence_, sequence_};
    TensorId shares = add("scores" + layer, "MatMul", {parts[0], parts[1]}, scores,
                          {{"transB", std::int64_t{1}}});
    shares = add("softmax" + layer, "Softmax", {shares}, scores);
    if (!heads) return add("y" + layer, "MatMul", {shares, parts[2]}, states());
    const TensorId y = add("y" + layer, "MatMul", {shares, parts[2]}, by_head());
    const TensorId turned =
        add("turned" + layer, "Transpose", {y}, {batch_, sequence_, kHeads, width_ / kHeads},
            {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
    return add("merged" + layer, "Reshape", {turned}, states());
  }

  Shape by_head() const { return {batch_, kHeads, sequence_, width_ / kHeads}; }

  std::vector<TensorId> split(const std::string& layer, TensorId packed) {
    const std::vector<std::int64_t> thirds(3, width_);
    const TensorSpec part{.shape = states(), .dtype = DType::kFloat32};
    const auto parts = builder_.add({.name = "split" + layer,
                                     .type = "Split",
                                     .inputs = {packed},
                                     .attributes = {{"axis", std::int64_t{2}}, {"split", thirds}}},
                                    {part, part, part});
    return {parts.begin(), parts.end()};
  }

  std::vector<TensorId> by_heads(const std::string& layer, TensorId packed) {
    const std::int64_t size = width_ / kHeads;
    const TensorId apart =
        add("apart" + layer, "Reshape", {packed}, {batch_, sequence_, 3, kHeads, size});
    const TensorId first =
        add("first" + layer, "Transpose", {apart}, {3, batch_, kHeads, sequence_, size},
            {{"perm", std::vector<std::int64_t>{2, 0, 3, 1, 4}}});
    std::vector<TensorId> parts;
    for (const std::int64_t i : {0, 1, 2}) {
      const std::string name = std::to_string(i) + layer;
      const TensorId place =
          builder_.add({.name = "place" + name, .type = "constant", .attributes = {{"value", i}}},
                       {{.shape = {}, .dtype = DType::kInt64}})[0];
      parts.push_back(
          add("part" + name, "Gather", {first, place}, by_head(), {{"axis", std::int64_t{0}}}));
    }
    return parts;
  }

  std::vector<TensorId> stacked(const std::string& layer, TensorId packed) {
    TensorId stack = add("apart" + layer, "Reshape", {packed}, {batch_, sequence_, 3, width_});
    stack = add("more" + layer, "Unsqueeze", {stack}, {1, batch_, sequence_, 3, width_},
                {{"axes", std::vector<std::int64_t>{0}}});
    stack = add("first" + layer, "Transpose", {stack}, {3, batch_, sequence_, 1, width_},
                {{"perm", std::vector<std::int64_t>{3, 1, 2, 0, 4}}});
    stack = add("less" + layer, "Squeeze", {stack}, {3, batch_, sequence_, width_},
                {{"axes", std::vector<std::int64_t>{3}}});
    std::vector<TensorId> parts;
    for (const std::int64_t i : {0, 1, 2}) {
      const std::string name = std::to_string(i) + layer;
      const TensorId part = add("slice" + name, "Slice", {stack}, {1, batch_, sequence_, width_},
                                {{"axes", std::vector<std::int64_t>{0}},
                                 {"starts", std::vector<std::int64_t>{i}},
                                 {"ends", std::vector<std::int64_t>{i + 1}}});
      parts.push_back(add("part" + name, "Squeeze", {part}, states(),
                          {{"axes", std::vector<std::int64_t>{0}}}));
    }
    return parts;
  }

  Packed how_;
  std::int64_t batch_, sequence_, width_;
  GraphBuilder builder_{"packed"};
};

Graph apart_from(const std::string& model) {
  if (const auto packed = kPacked.find(model); packed != kPacked.end()) {
    return PackedAttention(packed->second, 4, 6, 16).step();
  }
  return decompose(translate_captured(*read_model(model).graph).graph);
}

// The sources of another graph, in the shapes that this one has.
exec::SourceValue as_in(const Graph& other, const exec::SourceValue& sources) {
  return [&other, sources](const Graph& graph, OpId op, std::size_t output) {
    const auto shape = graph.shape(graph.outputs(op)[output]);
    return sources(other, *other.find_op(graph.op_name(op)), output)
        .reshape({shape.data(), shape.size()})
        .contiguous();
  };
}

class Interleaved : public ::testing::TestWithParam<std::string> {};

TEST_P(Interleaved, computes_the_same_in_twofold_dimensions) {
  const Graph whole = apart_from(GetParam());
  const Graph graph = interleave(whole);
  int sums = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) sums += graph.type(op) == "Einsum" ? 1 : 0;
  ASSERT_GT(sums, 5);
  const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
  const auto before = exec::interpret(whole, sources, {.updates = true});
  const auto after = exec::interpret(graph, as_in(whole, sources), {.updates = true});
  for (OpId op = 0; op < whole.num_ops(); ++op) {
    const auto same = graph.find_op(whole.op_name(op));
    ASSERT_TRUE(same) << whole.op_name(op);
    if (graph.find_op(fmt::format("{}/bias", whole.op_name(op)))) continue;
    for (std::size_t i = 0; i < whole.outputs(op).size(); ++i) {
      const torch::Tensor wanted = before[whole.outputs(op)[i]].to(torch::kDouble).flatten();
      const torch::Tensor found = after[graph.outputs(*same)[i]].to(torch::kDouble).flatten();
      EXPECT_TRUE(torch::allclose(wanted, found, 1e-8, 1e-9)) << whole.op_name(op);
    }
  }
}

struct DividedStep {
  DividedStep(Graph made, int count) : graph(std::make_shared<const Graph>(std::move(made))) {
    ClusterSpec spec;
    spec.name = "equal";
    for (int i = 0; i < count; ++i) {
      spec.devices.push_back(
          {.name = fmt::format("gpu{}", i), .kind = "v100", .memory = 1LL << 36});
    }
    spec.links.push_back({.bandwidth = 10'000'000'000, .latency = 5000});
    problem = compile(graph, std::make_shared<const Cluster>(std::move(spec)));
    input = std::make_unique<PartitionInput>(*graph);
  }

  PlanSolution find(const char* method) const {
    PartitionContext context(*input, problem, workers_on(*problem));
    return context.evaluate(all_partition_methods().make({method})->find(context, {}, Rng(1)));
  }

  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Problem> problem;
  std::unique_ptr<PartitionInput> input;
};

TEST_P(Interleaved, computes_the_same_in_parts) {
  for (const int count : {2, 3, 4}) {
    const DividedStep step(interleave(apart_from(GetParam())), count);
    const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
    const auto values = exec::interpret(*step.graph, sources, {.updates = true});
    for (const char* method : {"tofu", "equal-chop"}) {
      SCOPED_TRACE(fmt::format("{} on {}", method, count));
      const Plan plan = step.find(method).plan;
      if (!expect_same(*step.graph, step.input->descriptions, plan, sources, values,
                       {.updates = true})) {
        return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Interleaved, ::testing::ValuesIn(kGated));

// Wide layers and few examples, which are better cut by columns of their weights.
TEST(Interleaved, gates_are_not_exchanged) {
  const Graph whole =
      apart_from("zoo:stacked-rnn:layers=1,sequence=4,hidden=512,input=512,classes=64,batch=16");
  const Bytes before = DividedStep(decompose(whole), 4).find("tofu").moved;
  const Bytes after = DividedStep(interleave(whole), 4).find("tofu").moved;
  EXPECT_LT(static_cast<double>(after), 0.8 * static_cast<double>(before));
}

TEST(Interleaved, queries_keys_and_values_are_not_exchanged) {
  for (const auto& [name, how] : kPacked) {
    SCOPED_TRACE(name);
    const Graph whole = PackedAttention(how, 2, 16, 512).step();
    const Bytes before = DividedStep(decompose(whole), 4).find("tofu").moved;
    const Bytes after = DividedStep(interleave(whole), 4).find("tofu").moved;
    EXPECT_LT(static_cast<double>(after), 0.9 * static_cast<double>(before));
  }
}

}  // namespace
}  // namespace emplace
