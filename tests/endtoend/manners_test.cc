// What a person expects of any program: signals, standard input and output, words that are
// misspelt, quiet, and lines that are no wider than they should be.
#include <algorithm>

#include "support/program.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kTwoOps = R"({"format": "emplace.graph/1", "name": "ops",
  "tensors": [{"bytes": 4}, {"bytes": 4}],
  "ops": [
    {"name": "a", "type": "mm", "inputs": [], "outputs": [0], "module": "enc.layer.0",
     "time_us": {"p100": 100}},
    {"name": "b", "type": "mm", "inputs": [0], "outputs": [1], "module": "enc.layer.1",
     "time_us": {"p100": 50}}]})";

class Manners : public testing::Program {
 protected:
  Manners() { folder_.write("ops.json", kTwoOps); }

  // Sent a signal after a few seconds, a command ends long before its time is up.
  CommandResult interrupted(const std::string& arguments, const std::string& signal) const {
    return folder_.shell("timeout --foreground -s " + signal + " 3 " EMPLACE_BINARY " " +
                         arguments + "; code=$?; [ $code = 124 ] && code=0; exit $code");
  }

  void expect_refused(const std::string& arguments, const std::string& message) const {
    Program::expect_refused(arguments, {"emplace: ", message});
  }
};

TEST_F(Manners, a_signal_ends_a_search_with_its_answer) {
  for (const std::string signal : {"INT", "TERM"}) {
    const CommandResult placed = interrupted(
        "place zoo:gnmt-4 -c 4xp100 --time 10m --threads 1 -o " + signal + ".json", signal);
    EXPECT_THAT(placed.err, HasSubstr("note: interrupted; this is the best so far"));
    EXPECT_THAT(placed.out, HasSubstr("wrote " + signal + ".json"));
    EXPECT_EQ(Json::parse(folder_.read(signal + ".json"))["format"], "emplace.placement/1");
  }
}

TEST_F(Manners, a_comparison_that_is_interrupted_says_so_and_has_the_heuristics) {
  const CommandResult result = interrupted(
      "compare zoo:gnmt-4:batch=64 -c 4xp100 --time 10m --threads 1 -p anneal,auto,single,expert",
      "TERM");
  EXPECT_THAT(result.err, HasSubstr("note: interrupted"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("\n single"), HasSubstr("\n expert"),
                                HasSubstr("Interrupted: "), HasSubstr(" of 4 runs gave a result")));
}

TEST_F(Manners, standard_output_takes_a_placement_and_standard_error_the_report) {
  for (const std::string command : {"place ops.json -p heft", "compare ops.json -p heft,single"}) {
    const CommandResult result = run(command + " -c 2xp100 -o -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(Json::parse(result.out)["format"], "emplace.placement/1");
    EXPECT_THAT(result.err, AllOf(HasSubstr("150.0 us"), Not(HasSubstr("wrote"))));
  }
  EXPECT_FALSE(folder_.has("-"));
  expect_refused("place ops.json -c 2xp100 -o - --json", "standard output can take one thing");
  expect_refused("place ops.json -c 2xp100 -o - --trace -", "standard output can take one thing");
}

TEST_F(Manners, standard_input_brings_a_model) {
  const CommandResult graph =
      folder_.shell(EMPLACE_BINARY " place - -c 2xp100 -p heft --json < ops.json");
  ASSERT_EQ(graph.exit_code, 0) << graph.err;
  EXPECT_EQ(Json::parse(graph.out)["step_ns"], 150000);
  run("zoo export zoo:vgg-16:training=false,batch=1 -o vgg.onnx");
  const CommandResult onnx =
      folder_.shell("gzip -c vgg.onnx | " EMPLACE_BINARY " place - -c 2xp100 -p heft --json");
  ASSERT_EQ(onnx.exit_code, 0) << onnx.err;
  EXPECT_GT(Json::parse(onnx.out)["step_ns"], 0);
  const CommandResult bad = folder_.shell("echo '{' | " EMPLACE_BINARY " place - -c 2xp100");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("emplace: standard input: "));
}

TEST_F(Manners, misspelt_words_are_answered_with_what_was_meant) {
  expect_refused("plac ops.json -c 2xp100", "unknown command 'plac' (did you mean 'place'?)");
  expect_refused("zoo lst", "unknown command 'lst' (did you mean 'list'?)");
  expect_refused("", "the command is missing: expected one of: place, compare");
  expect_refused("place resnet-50 -c 2xp100", "(did you mean 'zoo:resnet-50'?)");
  expect_refused("place resnet50:batch=4 -c 2xp100", "(did you mean 'zoo:resnet-50'?)");
  expect_refused("place ops.json -c 2xp100 --pin enc.layr=gpu0",
                 "(did you mean 'enc.layer'?); there are enc.layer.0, enc.layer.1");
  expect_refused("place ops.json -c 2xp100 --evaluation 64",
                 "'--evaluation 64' was not expected (did you mean '--evaluations'?)");
  expect_refused("place ops.json -c 2xp100 --threads 0", "--threads");
  expect_refused("place", "model is required");
}

TEST_F(Manners, help_offers_nothing_that_is_refused_and_nothing_twice) {
  const std::string partition = run("partition --help").out;
  for (const std::string option : {"--pin", "--forbid", "--fuse", "--modules"}) {
    EXPECT_THAT(partition, Not(HasSubstr(option)));
  }
  expect_refused("partition ops.json -c 2xp100 --pin a=gpu0", "are for whole ops");
  for (const std::string command : {"simulate", "export"}) {
    const std::string help = run(command + " --help").out;
    EXPECT_THAT(help, Not(HasSubstr("--placement")));
    EXPECT_THAT(help, HasSubstr("PLACEMENT"));
  }
  folder_.write("p.json", R"({"assignment": {"a": "gpu0", "b": "gpu0"}})");
  EXPECT_EQ(run("simulate ops.json --placement p.json -c 2xp100").exit_code, 0);
  expect_refused("simulate ops.json -c 2xp100", "the placement is missing");
}

TEST_F(Manners, quiet_prints_the_answer_alone) {
  folder_.write("p.json", R"({"graph": "other", "assignment": {"a": "gpu0", "b": "gpu0"}})");
  EXPECT_THAT(run("simulate ops.json p.json -c 2xp100").err, HasSubstr("was made for graph"));
  EXPECT_THAT(run("simulate ops.json p.json -c 2xp100 --quiet").err, IsEmpty());
  const CommandResult placed =
      interrupted("place zoo:gnmt-4 -c 4xp100 --time 10m --threads 1 -q", "TERM");
  EXPECT_THAT(placed.err, IsEmpty());
  EXPECT_THAT(placed.out, HasSubstr("step time"));
}

TEST_F(Manners, lines_that_are_piped_have_at_most_100_columns) {
  const auto longest = [](const std::string& text) {
    std::size_t most = 0;
    std::size_t columns = 0;
    for (const char c : text) {
      columns = c == '\n' ? 0 : columns + ((static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0);
      most = std::max(most, columns);
    }
    return most;
  };
  EXPECT_LE(longest(run("place zoo:vgg-16 -c 4xp100 -p metis").out), 100U);
  EXPECT_LE(longest(run("compare zoo:vgg-16 -c 4xp100 -p heuristic").out), 100U);
}

TEST_F(Manners, a_training_step_s_placement_is_not_taken_for_a_forward_pass_s) {
  run("zoo export zoo:vgg-16:training=false,batch=1 -o vgg.onnx");
  ASSERT_EQ(
      run("place vgg.onnx -c 2xp100 --training --optimizer adam -p metis -o p.json").exit_code, 0);
  EXPECT_EQ(Json::parse(folder_.read("p.json"))["made_with"],
            (Json{{"training", true}, {"optimizer", "adam"}}));
  expect_refused("simulate vgg.onnx p.json -c 2xp100",
                 "ops of a training step, and the model is a forward pass: give --training");
  EXPECT_EQ(run("simulate vgg.onnx p.json -c 2xp100 --training --optimizer adam").exit_code, 0);
}

TEST_F(Manners, texts_are_ascii_in_the_c_locale) {
  const auto has_other = [&](const std::string& environment) {
    const std::string text =
        folder_
            .shell(environment + " " EMPLACE_BINARY " compare zoo:vgg-16 -c 4xp100 -p heft,metis")
            .out;
    EXPECT_THAT(text, HasSubstr("metis"));
    return std::any_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) > 127; });
  };
  EXPECT_FALSE(has_other("LC_ALL=C"));
  EXPECT_FALSE(has_other("env -u LC_ALL -u LC_CTYPE -u LANG"));
  EXPECT_TRUE(has_other("LC_ALL=C.UTF-8"));
  EXPECT_TRUE(has_other("env -u LC_ALL -u LC_CTYPE LANG=de_DE.utf8"));
}

TEST_F(Manners, a_placement_says_which_batch_and_precision_it_is_for) {
  const Json made{{"batch", 2}, {"precision", "bf16"}};
  const std::string arguments = " zoo:vgg-16 -c 2xp100 --batch 2 --precision bf16 ";
  EXPECT_EQ(json_of("place" + arguments + "-p heft -o p.json")["made_with"], made);
  EXPECT_EQ(Json::parse(folder_.read("p.json"))["made_with"], made);
  EXPECT_EQ(json_of("simulate" + arguments + "p.json")["made_with"], made);
  EXPECT_EQ(json_of("compare" + arguments + "-p heft -o q.json")["made_with"], made);
  EXPECT_EQ(Json::parse(folder_.read("q.json"))["made_with"], made);
  const Json largest = json_of("place zoo:vgg-16 -c 1xp100@4GiB -p single --batch max -o r.json");
  EXPECT_EQ(largest["made_with"]["batch"], largest["explanation"]["batches"]["largest"]);
  EXPECT_EQ(Json::parse(folder_.read("r.json"))["made_with"], largest["made_with"]);
  EXPECT_FALSE(json_of("place zoo:vgg-16 -c 2xp100 -p heft").contains("made_with"));
}

TEST_F(Manners, json_says_why_nothing_fits) {
  for (const std::string command : {"place", "compare"}) {
    const CommandResult result = run(command + " zoo:gpt2-xl -c 1xp100 --json");
    EXPECT_EQ(result.exit_code, 1);
    const Json json = Json::parse(result.out);
    EXPECT_EQ(json["fits"], false);
    EXPECT_FALSE(json["reason"].get<std::string>().empty());
  }
}

}  // namespace
}  // namespace emplace
