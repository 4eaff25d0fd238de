#include "io/model_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace emplace {
namespace {

TEST(ModelFormats, are_told_apart_by_content) {
  const auto format = [](std::string_view content) { return recognise_model(content).name; };
  EXPECT_EQ(format(R"({"format": "emplace.graph/1"})"), "graph JSON");
  EXPECT_EQ(format("\n\t {"), "graph JSON");
  EXPECT_EQ(format(R"({"nodes": [], "maxSizePerFPGA": 3})"), "dnn-partitioning");
  EXPECT_EQ(format("node1 -- Input0 -- forward_compute_time=0.0\n"), "PipeDream");
  EXPECT_EQ(format("\n\tnode1 -- node2\n"), "PipeDream");
  EXPECT_EQ(format("\x08\x08"), "ONNX");
  // The mark of a workload, but in no JSON object.
  EXPECT_EQ(format("node1 -- \"maxSizePerFPGA\""), "PipeDream");
}

TEST(ModelFormats, blank_content_is_an_empty_file) {
  for (const std::string_view blank : {"", " \n\t\r\n"}) {
    try {
      recognise_model(blank);
      ADD_FAILURE() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "the file is empty");
    }
  }
}

TEST(ModelFormats, text_of_another_kind_is_no_broken_onnx_model) {
  for (const std::string_view text :
       {"# Read me\n", "node1\nnode2 -- node3\n", "<!doctype html>"}) {
    try {
      recognise_model(text);
      ADD_FAILURE() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("expected ONNX, graph JSON"));
    }
  }
}

TEST(ModelFormats, names_are_freed_of_one_ending_and_of_gzip) {
  EXPECT_EQ(without_model_ending("bert.json"), "bert");
  EXPECT_EQ(without_model_ending("bert.v2.onnx.gz"), "bert.v2");
  EXPECT_EQ(without_model_ending("vgg16.graph.txt"), "vgg16");
  EXPECT_EQ(without_model_ending("vgg16.txt"), "vgg16");
  EXPECT_EQ(without_model_ending("vgg16.graph"), "vgg16");
  EXPECT_EQ(without_model_ending("bert.gz"), "bert");
  EXPECT_EQ(without_model_ending("bert.yaml"), "bert.yaml");
}

TEST(ModelFormats, endings_that_other_files_share_do_not_make_a_model) {
  for (const std::string_view model : {"a.json", "a.json.gz", "a.onnx", "a.onnx.gz", "a.graph.txt"})
    EXPECT_TRUE(has_model_ending(model)) << model;
  for (const std::string_view other : {"LICENSE.txt", "a.graph", "a.gz", "a.yaml", "json", "onnx"})
    EXPECT_FALSE(has_model_ending(other)) << other;
}

}  // namespace
}  // namespace emplace
