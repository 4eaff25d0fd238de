// emplace zoo, and models of the zoo and training options on the command line.
#include "io/file.h"
#include "io/onnx_check.h"
#include "io/readers.h"
#include "io/same_graph.h"
#include "support/program.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

class ZooCommand : public testing::Program {
 protected:
  CommandResult run(const std::string& arguments) const {
    CommandResult result = folder_.emplace(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.err;
    return result;
  }

  void expect_refused(const std::string& arguments, const std::string& message) const {
    Program::expect_refused(arguments, std::vector<std::string>{message});
  }

  // On one device.
  Json place(const std::string& arguments) const {
    return Json::parse(run("place " + arguments + " -c 1xh200 --placer single --json").out);
  }
  static Bytes peak(const Json& placed) { return placed["devices"][0]["peak_bytes"]; }
};

TEST_F(ZooCommand, list_says_what_every_model_is) {
  const Json list = Json::parse(run("zoo list --json").out)["models"];
  EXPECT_EQ(list.size(), zoo::models().size() + zoo::families().size());
  for (const Json& entry : list) {
    const bool random = entry["name"].get<std::string>().starts_with("family:");
    EXPECT_GT(entry["parameters"], 0) << entry;
    EXPECT_GT(entry["flops"], 0) << entry;
    EXPECT_GT(entry["peak_bytes"], entry["parameter_bytes"]) << entry;
    EXPECT_EQ(entry.contains("batch"), !random) << entry;
    if (entry["name"] == "resnet-50") {
      EXPECT_EQ(entry["parameters"], 25557032);
      EXPECT_EQ(entry["parameter_bytes"], 25557032 * 4);
      EXPECT_EQ(entry["batch"], 32);
      EXPECT_EQ(entry["peak_bytes"], peak(place("zoo:resnet-50")));
    }
  }
  const std::string table = run("zoo list").out;
  EXPECT_THAT(table, HasSubstr("25,557,032"));
  EXPECT_THAT(table, HasSubstr("family:ptb"));
}

TEST_F(ZooCommand, info_says_figures_options_and_source) {
  const std::string text = run("info zoo:resnet-50").out;
  EXPECT_THAT(text, HasSubstr("He et al."));
  EXPECT_THAT(text, HasSubstr("25,557,032 parameters as published"));
  EXPECT_THAT(text, HasSubstr("parameters   25,557,032 (97.5 MiB)"));
  EXPECT_THAT(text, HasSubstr("float32, float16, bfloat16"));
  EXPECT_THAT(text, HasSubstr("32 samples"));
  const Json half = Json::parse(run("info zoo:resnet-50 --batch 16 --json").out);
  EXPECT_EQ(half["samples"], 16);
  EXPECT_EQ(half["published_parameters"], 25557032);
  const Json family = Json::parse(run("info family:ptb:seed=3 --json").out);
  EXPECT_FALSE(family["options"].empty());
  expect_refused("info zoo:resnet50",
                 "there is no zoo model 'resnet50' (did you mean 'resnet-50'?)");
}

TEST_F(ZooCommand, export_writes_the_graph_that_the_name_stands_for) {
  run("zoo export alexnet:batch=2 -o a.json");
  run("zoo export zoo:alexnet:batch=2 -o b.json.gz");
  const Graph graph = *read_model("zoo:alexnet:batch=2").graph;
  expect_same_graph(*read_model(folder_.path("a.json")).graph, graph);
  expect_same_graph(*read_model(folder_.path("b.json.gz")).graph, graph);
  EXPECT_EQ(place("zoo:alexnet:batch=2")["step_ns"], place("a.json")["step_ns"]);
  run("zoo export family:ptb:seed=4 --optimizer adam -o c.json");
  EXPECT_THAT(folder_.read("c.json"), HasSubstr("AdamUpdate"));
}

TEST_F(ZooCommand, export_writes_valid_onnx_of_the_forward_pass) {
  run("zoo export resnet-50:batch=2 -o r.onnx.gz");
  EXPECT_EQ(onnx_complaint(read_file(folder_.path("r.onnx.gz"))), "");
  const Json built = place("zoo:resnet-50:batch=2,training=false");
  EXPECT_EQ(place("r.onnx.gz")["step_ns"], built["step_ns"]);
  run("zoo export resnet-50:training=false -o s.onnx");
  expect_refused("zoo export resnet-50:training=true -o t.onnx", "ONNX holds a forward pass");
  expect_refused("zoo export resnet-50 --optimizer sgd -o t.onnx",
                 "optimizer sgd is for a training step");
  expect_refused("zoo export resnet-50:dtype=bfloat16 -o t.onnx", "takes no bfloat16");
  expect_refused("zoo export resnet-50 -o t.txt", "expected a name that ends in .json");
  expect_refused("zoo export resnet-50:layer=3 -o t.json", "unknown option 'layer'");
}

TEST_F(ZooCommand, training_makes_the_same_step_of_an_exported_forward_pass) {
  run("zoo export resnet-50:batch=2 -o r.onnx");
  const Json built = place("zoo:resnet-50:batch=2,optimizer=sgd");
  const Json made = place("r.onnx --training");
  EXPECT_EQ(made["step_ns"], built["step_ns"]);
  EXPECT_EQ(peak(made), peak(built));
  EXPECT_GT(made["step_ns"], place("r.onnx")["step_ns"]);
  EXPECT_EQ(place("zoo:resnet-50:batch=2,training=false --training --optimizer sgd")["step_ns"],
            built["step_ns"]);
  // Two numbers for each weight.
  EXPECT_GE(peak(place("r.onnx --training --optimizer adam")) - peak(built), 2 * 25557032 * 4);
}

TEST_F(ZooCommand, recompute_takes_time_for_memory) {
  const std::string model = "zoo:gpt2-small:batch=2,layers=4";
  const Json kept = place(model);
  const Json again = place(model + " --recompute \"transformer.h.*\"");
  EXPECT_LT(peak(again), peak(kept));
  EXPECT_GT(again["step_ns"], kept["step_ns"]);
  // It takes one module at a time, and leaves the arguments after it alone.
  const Json two = place("--recompute transformer.h.1 --recompute transformer.h.2 " + model);
  EXPECT_GT(two["step_ns"], kept["step_ns"]);
  EXPECT_LT(two["step_ns"], again["step_ns"]);
}

TEST_F(ZooCommand, colocated_gradients_stay_with_their_forward_ops) {
  run("zoo export alexnet:batch=2 --colocate-gradients -o a.json");
  const Graph graph = *read_model(folder_.path("a.json")).graph;
  const auto forward = graph.find_op("features.0.Conv");
  ASSERT_TRUE(forward);
  int with_it = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kBackward) continue;
    with_it += !graph.colocate(op).empty() && graph.colocate(op) == graph.colocate(*forward);
  }
  EXPECT_GE(with_it, 1);
  run("zoo export alexnet:batch=2,optimizer=sgd -o b.json");
  EXPECT_THAT(folder_.read("b.json"), Not(HasSubstr("\"colocate\"")));
}

TEST_F(ZooCommand, options_of_a_training_step_are_refused_where_there_is_none) {
  run("zoo export alexnet:batch=2 -o a.onnx");
  run("zoo export alexnet:batch=2 -o a.json");
  expect_refused("place a.onnx -c 1xh200 --recompute features",
                 "recomputing features is for a training step: ask for training too");
  expect_refused("place a.onnx -c 1xh200 --colocate-gradients",
                 "colocating gradients is for a training step: ask for training too");
  expect_refused("place zoo:alexnet:training=false -c 1xh200 --optimizer adam",
                 "'zoo:alexnet:training=false' is a forward pass");
  expect_refused("place zoo:alexnet -c 1xh200 --optimizer adamw", "adamw");
  expect_refused("place a.json -c 1xh200 --training", "a.json: op '");
  expect_refused("place zoo:alexne -c 1xh200", "did you mean 'alexnet'?");
}

}  // namespace
}  // namespace emplace
