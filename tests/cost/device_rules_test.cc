#include "cost/device_rules.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "sim/placement.h"

#include "support/timed_graph.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = DeviceRule::Kind;

// Two encoder layers, a decoder, and a head that reads the decoder's parameter.
std::shared_ptr<const Graph> model() {
  TimedGraph graph;
  const TensorId w0 = graph.parameter("encoder.0.weight");
  const TensorId a = graph.op("first", 10, {w0});
  const TensorId w1 = graph.parameter("encoder.10.weight");
  const TensorId b = graph.op("second", 10, {a, w1});
  const TensorId w2 = graph.parameter("decoder.weight");
  const TensorId c = graph.op("third", 10, {b, w2});
  graph.view("third.view", c);
  return graph.build();
}

Cluster three_devices() {
  ClusterSpec spec = gpu_cluster(3);
  spec.devices[2].name = "cpu0";
  spec.devices[2].kind = "cpu";
  return Cluster(std::move(spec));
}

DeviceRule pin(const std::string& text) {
  return DeviceRule::parse(Kind::kPin, text);
}

DeviceRule forbid(const std::string& text) {
  return DeviceRule::parse(Kind::kForbid, text);
}

std::shared_ptr<const Problem> compiled_under(std::vector<DeviceRule> rules) {
  return compile(model(), std::make_shared<const Cluster>(three_devices()),
                 CompileOptions{.rules = std::move(rules)});
}

std::vector<DeviceId> devices_of(const Problem& problem, const std::string& op) {
  const auto devices = problem.allowed_devices(problem.group_of(*problem.graph().find_op(op)));
  return {devices.begin(), devices.end()};
}

std::string refusal_when(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(DeviceRules, a_rule_is_read_as_it_is_written) {
  const DeviceRule rule = pin(" encoder.* = gpu0 , cpu ");
  EXPECT_EQ(rule.ops, "encoder.*");
  EXPECT_THAT(rule.devices, ElementsAre("gpu0", "cpu"));
  EXPECT_EQ(rule.to_string(), "pin \"encoder.*=gpu0,cpu\"");
  EXPECT_EQ(forbid("a=b=gpu0").ops, "a=b") << "names of ops may hold an equals sign";
}

TEST(DeviceRules, refuses_text_that_is_no_rule) {
  for (const std::string text : {"", "encoder", "=gpu0", "encoder=", "encoder=gpu0,", "=", " = "}) {
    EXPECT_THAT(refusal_when([&] { forbid(text); }),
                HasSubstr("forbid " + text + ": expected OPS="));
  }
}

TEST(DeviceRules, a_pin_leaves_what_it_names_and_other_ops_alone) {
  const auto problem = compiled_under({pin("encoder.0=gpu1")});
  EXPECT_THAT(devices_of(*problem, "encoder.0.weight"), ElementsAre(1));
  EXPECT_THAT(devices_of(*problem, "first"), ElementsAre(1)) << "of the module by what it reads";
  EXPECT_THAT(devices_of(*problem, "second"), ElementsAre(0, 1, 2));
}

TEST(DeviceRules, a_module_stands_for_the_modules_in_it_but_not_for_longer_names) {
  const auto inside = compiled_under({pin("encoder=gpu1")});
  EXPECT_THAT(devices_of(*inside, "first"), ElementsAre(1));
  EXPECT_THAT(devices_of(*inside, "second"), ElementsAre(1));
  EXPECT_THAT(devices_of(*inside, "third"), ElementsAre(0, 1, 2));
  const auto one = compiled_under({pin("encoder.1*=gpu1")});
  EXPECT_THAT(devices_of(*one, "first"), ElementsAre(0, 1, 2));
  EXPECT_THAT(devices_of(*one, "second"), ElementsAre(1));
}

TEST(DeviceRules, kinds_stand_for_their_devices) {
  const auto problem = compiled_under({forbid("*=cpu")});
  for (const std::string op : {"first", "second", "third"}) {
    EXPECT_THAT(devices_of(*problem, op), ElementsAre(0, 1)) << op;
  }
  EXPECT_THAT(devices_of(*compiled_under({pin("third=gpu*")}), "third"), ElementsAre(0, 1));
}

TEST(DeviceRules, rules_narrow_each_other) {
  const auto problem = compiled_under({pin("*=gpu0,gpu1"), forbid("encoder.*=gpu0")});
  EXPECT_THAT(devices_of(*problem, "first"), ElementsAre(1));
  EXPECT_THAT(devices_of(*problem, "third"), ElementsAre(0, 1));
}

TEST(DeviceRules, what_shares_a_device_shares_its_rules) {
  EXPECT_THAT(devices_of(*compiled_under({pin("third.view=cpu0")}), "third"), ElementsAre(2));
}

TEST(DeviceRules, refuses_rules_that_match_nothing) {
  EXPECT_THAT(refusal_when([] { compiled_under({pin("encodr=gpu0")}); }),
              AllOf(HasSubstr("pin \"encodr=gpu0\""), HasSubstr("no op and no module")));
  EXPECT_THAT(refusal_when([] { compiled_under({pin("encoder.*=gpu7")}); }),
              AllOf(HasSubstr("'gpu7' is no device"), HasSubstr("gpu0, gpu1, cpu0")));
}

TEST(DeviceRules, refuses_rules_that_leave_an_op_no_device) {
  EXPECT_THAT(refusal_when([] {
                compiled_under({pin("first=gpu0"), forbid("encoder.*=gpu*")});
              }),
              AllOf(HasSubstr("op 'first'"), HasSubstr("pin \"first=gpu0\""),
                    HasSubstr("forbid \"encoder.*=gpu*\"")));
  EXPECT_THAT(refusal_when([] {
                compiled_under({pin("third=gpu0"), pin("third.view=gpu1")});
              }),
              AllOf(HasSubstr("op 'third"), HasSubstr("no device is")));
}

TEST(DeviceRules, a_placement_against_a_rule_is_refused_with_the_op) {
  const auto problem = compiled_under({pin("second=gpu1")});
  Placement placement(problem->num_ops(), 1);
  EXPECT_NO_THROW(check_placement(*problem, placement));
  placement[*problem->graph().find_op("second")] = 0;
  EXPECT_THAT(refusal_when([&] { check_placement(*problem, placement); }),
              AllOf(HasSubstr("op 'second'"), HasSubstr("'gpu0'"), HasSubstr("gpu1")));
}

}  // namespace
}  // namespace emplace
