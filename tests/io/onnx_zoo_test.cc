// Every model of the zoo as ONNX.
#include <string>

#include <gtest/gtest.h>

#include "io/onnx_check.h"
#include "io/onnx_writer.h"
#include "io/readers.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

double total_flops(const Graph& graph) {
  double flops = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    flops += static_cast<double>(graph.flops(op).value_or(0));
  }
  return flops;
}

void expect_exports(const std::string& name) {
  SCOPED_TRACE(name);
  const Graph graph = zoo::build_model(name);
  const std::string bytes = write_onnx(graph);
  EXPECT_EQ(onnx_complaint(bytes), "");
  const Graph read = read_onnx(bytes, {}, "zoo");
  EXPECT_NEAR(total_flops(read) / total_flops(graph), 1, 0.03);
  EXPECT_EQ(zoo::count_parameters(read), zoo::count_parameters(graph));
}

TEST(OnnxZoo, every_model_and_family_is_valid_and_reads_back_with_its_cost) {
  for (const zoo::ModelInfo& info : zoo::models()) {
    expect_exports("zoo:" + info.name + ":training=false");
    expect_exports("zoo:" + info.name + ":training=false,batch=2,dtype=float16");
  }
  for (const zoo::ModelInfo& info : zoo::families()) {
    expect_exports("family:" + info.name + ":training=false");
  }
}

}  // namespace
}  // namespace emplace
