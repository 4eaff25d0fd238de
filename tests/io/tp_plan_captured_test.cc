// A tp_plan of what was captured from PyTorch, whose operators are not ONNX's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "graph/graph_builder.h"

#include "io/partition_file.h"
#include "io/tp_plan.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;
using CapturedShape = std::vector<std::int64_t>;

constexpr int kHeads = 4;
constexpr int kWidth = 16;
constexpr int kInside = 32;

// Attention as a capture writes it: two examples of four positions, with weights as nn.Linear keeps
// them, or the other way round.
class CapturedAttention {
 public:
  explicit CapturedAttention(bool outputs_first = true) : outputs_first_(outputs_first) {
    const TensorId x = builder_.add({.name = "x", .type = "input"}, {spec({2, 4, kWidth})})[0];
    const TensorId q = heads(layer("0.q", x, kWidth, kInside));
    const TensorId k = heads(layer("0.k", x, kWidth, kInside));
    const TensorId v = heads(layer("0.v", x, kWidth, kInside));
    const TensorId turned = op("transpose", {k}, {8, 8, 4}, {{"perm", CapturedShape{0, 2, 1}}});
    const TensorId scores = view(op("bmm", {q, turned}, {8, 4, 4}), {2, kHeads, 4, 4});
    const TensorId shares =
        op("_softmax", {scores}, {2, kHeads, 4, 4}, {{"axis", std::int64_t{-1}}});
    const TensorId found = view(op("bmm", {view(shares, {8, 4, 4}), v}, {8, 4, 8}), {2, 4, 4, 8});
    const TensorId back = op("clone", {swapped(found)}, {2, 4, 4, 8});
    layer("0.out", view(back, {2, 4, kInside}), kInside, kWidth);
  }

  Graph graph() && { return std::move(builder_).build(); }
  const SavedPartition& partition() const { return partition_; }

 private:
  static TensorSpec spec(CapturedShape shape) {
    return {.shape = std::move(shape), .dtype = DType::kFloat32};
  }

  TensorId op(const std::string& type, std::vector<TensorId> inputs, CapturedShape shape,
              Attributes attributes = {}) {
    return builder_.add({.name = type + std::to_string(count_++),
                         .type = type,
                         .inputs = std::move(inputs),
                         .attributes = std::move(attributes)},
                        {spec(std::move(shape))})[0];
  }

  TensorId view(TensorId tensor, CapturedShape shape) {
    return op("view", {tensor}, std::move(shape));
  }

  TensorId swapped(TensorId tensor) {
    return op("transpose", {tensor}, {2, 4, 4, 8}, {{"perm", CapturedShape{0, 2, 1, 3}}});
  }

  TensorId heads(TensorId wide) {
    const TensorId apart = swapped(view(wide, {2, 4, kHeads, kInside / kHeads}));
    return view(op("expand", {apart}, {2, kHeads, 4, 8}), {8, 4, 8});
  }

  // addmm where there is a bias; the outer layer has none.
  TensorId layer(const std::string& name, TensorId from, std::int64_t in, std::int64_t out) {
    const bool columns = out == kInside;
    const int cut = columns == outputs_first_ ? 0 : 1;
    const CapturedShape shape = outputs_first_ ? CapturedShape{out, in} : CapturedShape{in, out};
    const TensorId weight =
        builder_.add({.name = name + ".weight", .type = "parameter"}, {spec(shape)})[0];
    partition_.tensors[name + ".weight"] = {.shape = shape, .split = {cut}};
    const TensorId factor = outputs_first_ ? op("t", {weight}, {in, out}) : weight;
    const TensorId flat = view(from, {8, in});
    if (!columns) return view(op("mm", {flat, factor}, {8, out}), {2, 4, out});
    const TensorId bias =
        builder_.add({.name = name + ".bias", .type = "parameter"}, {spec({out})})[0];
    partition_.tensors[name + ".bias"] = {.shape = {out}, .split = {0}};
    return view(op("addmm", {bias, flat, factor}, {8, out}), {2, 4, out});
  }

  bool outputs_first_;
  int count_ = 0;
  GraphBuilder builder_{"attention"};
  SavedPartition partition_{.factors = {2}};
};

TEST(CapturedTpPlan, columns_are_followed_through_attention_to_rows) {
  CapturedAttention model;
  const SavedPartition partition = model.partition();
  std::vector<std::string> said;
  const std::string plan = write_tp_plan(std::move(model).graph(), partition,
                                         [&](const std::string& text) { said.push_back(text); });
  EXPECT_EQ(
      nlohmann::json::parse(plan),
      nlohmann::json(
          {{"*.q", "colwise"}, {"*.k", "colwise"}, {"*.v", "colwise"}, {"*.out", "rowwise"}}));
  EXPECT_THAT(said, ::testing::Each(::testing::Not(HasSubstr("inputs first"))));
}

TEST(CapturedTpPlan, heads_that_devices_cannot_share_out_are_gathered) {
  CapturedAttention model;
  SavedPartition partition = model.partition();
  partition.factors = {8};
  const std::string plan =
      write_tp_plan(std::move(model).graph(), partition, [](const std::string&) {});
  const auto json = nlohmann::json::parse(plan);
  EXPECT_EQ(json["*.q"], "colwise_gather_output");
  EXPECT_EQ(json["*.out"], "rowwise_split_input");
}

TEST(CapturedTpPlan, weights_with_their_inputs_first_are_refused) {
  CapturedAttention model(false);
  const SavedPartition partition = model.partition();
  EXPECT_THAT(error_text([&] {
                write_tp_plan(std::move(model).graph(), partition, [](const std::string&) {});
              }),
              HasSubstr("parameter '0.q.weight' has its inputs first"));
}

}  // namespace
}  // namespace emplace
