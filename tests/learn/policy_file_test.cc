#include "learn/general/policy_file.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "learn/general/agent.h"
#include "learn/general/general_method.h"
#include "learn/general/kinds.h"
#include "learn/general/shipped.h"
#include "learn/nn/module.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string policy_error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string error_in(const std::string& bytes) {
  return policy_error_of([&] { PolicyFile(bytes, "my.policy"); });
}

Parameters some_parameters(std::uint64_t seed) {
  Parameters parameters;
  Rng rng(seed);
  parameters.uniform("a", {3, 2}, 1, rng);
  parameters.uniform("b", {5}, 1, rng);
  return parameters;
}

std::string example_policy() {
  return policy_bytes("mars", {.width = 6, .layers = 3, .superposition = false}, some_parameters(1),
                      "trained\non things\n");
}

std::shared_ptr<const Problem> two_ops() {
  TimedGraph graph;
  graph.op("b", 1, {graph.op("a", 1, {})});
  return compile_timed(graph.build(), gpu_cluster(2));
}

// Of an agent of this kind and width, which the file says is of another.
std::string policy_file_of(const std::string& kind, std::int64_t width, std::int64_t said) {
  Rng rng(1);
  const GeneralAgentPtr agent = make_agent(kind, *two_ops(), {.width = width}, "cpu", rng);
  return policy_bytes(kind, {.width = said}, agent->parameters(), "");
}

std::string error_of_method(const std::string& kind, const std::string& policy) {
  const auto problem = two_ops();
  Rng rng(1);
  return policy_error_of(
      [&] { general_method(*problem, policy, "my.policy", {.kind = kind}, "cpu", rng); });
}

TEST(PolicyFile, comes_back_as_it_was) {
  const PolicyFile file(example_policy(), "my.policy");
  EXPECT_EQ(file.file_name(), "my.policy");
  EXPECT_EQ(file.kind(), "mars");
  EXPECT_EQ(file.network().width, 6);
  EXPECT_EQ(file.network().layers, 3);
  EXPECT_FALSE(file.network().superposition);
  EXPECT_EQ(file.card(), "trained\non things\n");
  const Parameters saved = some_parameters(1);
  Parameters loaded = some_parameters(2);
  EXPECT_FALSE(torch::equal(loaded.tensors()[0], saved.tensors()[0]));
  file.load_into(loaded);
  for (std::size_t i = 0; i < saved.tensors().size(); ++i) {
    EXPECT_TRUE(torch::equal(loaded.tensors()[i], saved.tensors()[i])) << i;
  }
}

TEST(PolicyFile, is_no_checkpoint) {
  StateWriter state;
  state.put("version", std::int64_t{1});
  EXPECT_THAT(error_in(state.bytes()), AllOf(StartsWith("my.policy: "), HasSubstr("not a policy")));
  EXPECT_THAT(error_in(""), AllOf(StartsWith("my.policy: "), HasSubstr("not a policy")));
}

TEST(PolicyFile, damage_is_found_wherever_it_is) {
  const std::string bytes = example_policy();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_THAT(error_in(damaged), StartsWith("my.policy: ")) << i;
    EXPECT_THAT(error_in(bytes.substr(0, i)), StartsWith("my.policy: ")) << i;
  }
}

// Before anything of that size is made.
TEST(PolicyFile, that_says_it_is_larger_than_it_is_is_refused) {
  for (const GeneralNetwork& network :
       {GeneralNetwork{.width = 4096}, GeneralNetwork{.width = 1000},
        GeneralNetwork{.width = 6, .layers = 1'000'000},
        GeneralNetwork{.width = std::int64_t{1} << 40}}) {
    EXPECT_THAT(error_in(policy_bytes("mars", network, some_parameters(1), "")),
                AllOf(StartsWith("my.policy: a network of width "), HasSubstr("cannot hold")));
  }
}

TEST(PolicyFile, of_another_version_is_refused) {
  StateWriter state;
  state.put("version", std::int64_t{99});
  state.put("kind", std::string("gdp"));
  EXPECT_THAT(
      error_in(state.bytes("policy")),
      AllOf(StartsWith("my.policy: "), HasSubstr("version 99"), HasSubstr("train it again")));
}

TEST(PolicyFile, of_other_parameters_is_refused) {
  const PolicyFile file(example_policy(), "my.policy");
  Rng rng(1);
  Parameters larger;
  larger.uniform("a", {3, 4}, 1, rng);
  EXPECT_THAT(policy_error_of([&] { file.load_into(larger); }),
              AllOf(StartsWith("my.policy: "), HasSubstr("'a'"), HasSubstr("12")));
  Parameters others;
  others.uniform("other", {3, 2}, 1, rng);
  EXPECT_THAT(policy_error_of([&] { file.load_into(others); }),
              AllOf(StartsWith("my.policy: "), HasSubstr("'other'")));
}

TEST(PolicyFile, of_another_kind_is_refused_by_a_method) {
  EXPECT_EQ(error_of_method("mars", policy_file_of("mars", 8, 8)), "no error");
  EXPECT_THAT(
      error_of_method("gdp", policy_file_of("mars", 8, 8)),
      AllOf(StartsWith("my.policy: "), HasSubstr("mars"), HasSubstr("expected one of gdp")));
}

TEST(PolicyFile, of_another_width_is_refused_by_a_method) {
  for (const std::string& kind : general_kinds()) {
    EXPECT_EQ(error_of_method(kind, policy_file_of(kind, 8, 8)), "no error");
    EXPECT_THAT(error_of_method(kind, policy_file_of(kind, 16, 8)), StartsWith("my.policy: "))
        << kind;
  }
}

TEST(ShippedPolicies, are_whole_and_of_their_kind) {
  for (const std::string& kind : general_kinds()) {
    const PolicyFile file(shipped_policy(kind), "shipped");
    EXPECT_EQ(file.kind(), kind);
    EXPECT_THAT(file.card(), HasSubstr("policy: " + kind));
  }
  EXPECT_THAT(policy_error_of([] { shipped_policy("post"); }), HasSubstr("post"));
}

}  // namespace
}  // namespace emplace::learn
