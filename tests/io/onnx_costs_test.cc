#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include "graph/op_costs.h"

#include "io/onnx_models.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A model of one node, "op", with inputs a, b, c, ... of the given shapes.
struct OneNode {
  OneNode(const std::string& type, const std::vector<std::vector<std::int64_t>>& inputs,
          const std::string& domain = {}) {
    std::vector<std::string> names;
    for (const auto& shape : inputs) {
      names.push_back(std::string(1, static_cast<char>('a' + names.size())));
      model.input(names.back(), {shape.begin(), shape.end()});
    }
    node = &model.node(type, names, {"out"}, "op", domain);
    model.output("out");
  }
  void output(const std::vector<std::int64_t>& shape) {
    model.value_info("out", {shape.begin(), shape.end()});
  }
  std::int64_t flops() const {
    const Graph graph = model.read();
    return graph.flops(find_op(graph, "op")).value();
  }
  std::int64_t bytes() const {
    const Graph graph = model.read();
    return graph.bytes_moved(find_op(graph, "op")).value();
  }

  OnnxModelMaker model;
  onnx::NodeProto* node = nullptr;
};

TEST(OnnxCosts, know_every_operator_of_onnx) {
  std::vector<std::string> missing;
  std::set<std::string> all;
  for (const auto& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
    if (!schema.domain().empty()) continue;
    all.insert(schema.Name());
    if (find_cost_row("", schema.Name()) == nullptr) missing.push_back(schema.Name());
  }
  EXPECT_THAT(missing, IsEmpty());
  EXPECT_GT(all.size(), 150U);
}

TEST(OnnxCosts, are_of_an_operator_in_its_domain) {
  EXPECT_NE(find_cost_row("ai.onnx", "MatMul"), nullptr);
  EXPECT_EQ(find_cost_row("", "MatMu"), nullptr);
  EXPECT_EQ(find_cost_row("com.microsoft", "MatMul"), nullptr);
  EXPECT_NE(find_cost_row("com.microsoft", "FusedMatMul"), nullptr);
}

TEST(OnnxCosts, of_matrix_products) {
  EXPECT_EQ(OneNode("MatMul", {{5, 2, 3}, {3, 4}}).flops(), 2 * 5 * 2 * 3 * 4);
  EXPECT_EQ(OneNode("MatMul", {{3}, {3}}).flops(), 2 * 3);
  OneNode gemm("Gemm", {{3, 2}, {3, 4}, {4}});
  set_int(*gemm.node, "transA", 1);
  EXPECT_EQ(gemm.flops(), 2 * 2 * 3 * 4 + 2 * 4);
  OneNode fused("FusedMatMul", {{3, 2}, {3, 4}}, "com.microsoft");
  set_int(*fused.node, "transA", 1);
  fused.output({2, 4});
  EXPECT_EQ(fused.flops(), 2 * 2 * 3 * 4);
}

TEST(OnnxCosts, of_convolutions) {
  OneNode conv("Conv", {{2, 4, 10, 10}, {6, 4, 3, 3}, {6}});
  EXPECT_EQ(conv.flops(), (2 * 4 * 9 + 1) * (2 * 6 * 8 * 8));
  OneNode grouped("Conv", {{1, 4, 10}, {8, 2, 3}});
  set_int(*grouped.node, "group", 2);
  EXPECT_EQ(grouped.flops(), 2 * 2 * 3 * (8 * 8));
  OneNode transposed("ConvTranspose", {{1, 4, 5, 5}, {4, 6, 2, 2}});
  EXPECT_EQ(transposed.flops(), 2 * (4 * 5 * 5) * (6 * 2 * 2));
}

TEST(OnnxCosts, of_recurrent_networks) {
  // 7 steps of batch 2, input 3, hidden 5, four gates; 10 for each gate's function.
  OneNode lstm("LSTM", {{7, 2, 3}, {1, 20, 3}, {1, 20, 5}});
  set_int(*lstm.node, "hidden_size", 5);
  EXPECT_EQ(lstm.flops(), 7 * 2 * (2 * 20 * (3 + 5) + 20 * 10));
}

TEST(OnnxCosts, of_einsum_follow_the_equation) {
  const auto flops = [](const std::string& equation,
                        const std::vector<std::vector<std::int64_t>>& shapes,
                        const std::vector<std::int64_t>& out) {
    OneNode node("Einsum", shapes);
    set_string(*node.node, "equation", equation);
    node.output(out);
    return node.flops();
  };
  EXPECT_EQ(flops("bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}, {2, 3, 5}), 2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(flops("...ij, ...jk -> ...ik", {{2, 3, 4}, {4, 5}}, {2, 3, 5}), 2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(flops("ij,jk", {{3, 4}, {4, 5}}, {3, 5}), 2 * 3 * 4 * 5);
  EXPECT_EQ(flops("ii->", {{4, 4}}, {}), 4);
  // (ij,jk) first, then j is gone: 2*3*4*5 + 2*3*5*6.
  EXPECT_EQ(flops("ij,jk,kl->il", {{3, 4}, {4, 5}, {5, 6}}, {3, 6}), 120 + 180);
}

TEST(OnnxCosts, of_elementwise_operators_and_reductions) {
  EXPECT_EQ(OneNode("Add", {{2, 3}, {3}}).flops(), 6);
  EXPECT_EQ(OneNode("Tanh", {{2, 3}}).flops(), 8 * 6);
  EXPECT_EQ(OneNode("Softmax", {{2, 3}}).flops(), 12 * 6);
  EXPECT_EQ(OneNode("ReduceMean", {{2, 3}}).flops(), 6);
  EXPECT_EQ(OneNode("GlobalAveragePool", {{1, 2, 4, 4}}).flops(), 32);
  OneNode pool("MaxPool", {{1, 2, 4, 4}});
  set_ints(*pool.node, "kernel_shape", {3, 3});
  EXPECT_EQ(pool.flops(), 9 * (2 * 2 * 2));
}

TEST(OnnxCosts, of_attention_count_projection_scores_and_values) {
  // Batch 2, 5 queries, 7 keys, 4 heads of size 2.
  OneNode split("MultiHeadAttention", {{2, 5, 8}, {2, 7, 8}, {2, 7, 8}}, "com.microsoft");
  set_int(*split.node, "num_heads", 4);
  split.output({2, 5, 8});
  const std::int64_t both = 2 * (2 * 2 * 5 * 7 * 8);
  const std::int64_t softmax = 12 * (2 * 4 * 5 * 7);
  EXPECT_EQ(split.flops(), both + softmax);
  OneNode heads("Attention", {{2, 4, 5, 2}, {2, 4, 7, 2}, {2, 4, 7, 2}});
  heads.output({2, 4, 5, 2});
  EXPECT_EQ(heads.flops(), both + softmax);
  // It makes queries, keys and values (24 columns) of its one input first.
  OneNode fused("Attention", {{2, 5, 8}, {8, 24}, {24}}, "com.microsoft");
  set_int(*fused.node, "num_heads", 4);
  fused.output({2, 5, 8});
  EXPECT_EQ(fused.flops(), 2 * (2 * 5 * 8) * 24 + 2 * (2 * 2 * 5 * 5 * 8) + 12 * (2 * 4 * 5 * 5));
}

TEST(OnnxCosts, of_gathering_read_only_what_is_written) {
  OneNode gather("Gather", {{1000, 8}});
  gather.model.integers("rows", {1, 2, 3});
  gather.node->add_input("rows");
  EXPECT_EQ(gather.flops(), 0);
  EXPECT_EQ(gather.bytes(), 2 * (3 * 8 * 4) + 3 * 8);
}

TEST(OnnxCosts, of_reading_a_shape_do_not_grow_with_the_tensor) {
  OneNode shape("Shape", {{1000, 1000}});
  EXPECT_EQ(shape.bytes(), 2 * 8);
  EXPECT_EQ(shape.flops(), 0);
}

TEST(OnnxCosts, of_an_operator_that_reads_a_tensor_twice_count_it_once) {
  OneNode square("Mul", {{5}});
  square.node->add_input("a");
  EXPECT_EQ(square.bytes(), 5 * 4 + 5 * 4);
}

}  // namespace
}  // namespace emplace
