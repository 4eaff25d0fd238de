// Executed steps by the public headers alone, on devices that share a core.
#include <emplace/emplace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/error_text.h"
#include "support/shared_core.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;

[[maybe_unused]] std::shared_ptr<const Problem> small_step(Bytes memory = kUnlimited) {
  return compile(read_model("zoo:stacked-rnn:layers=1,hidden=16,sequence=2,batch=4").graph,
                 shared_core_cluster(2, {}, memory));
}

#ifdef EMPLACE_LEARN
TEST(Run, measures_a_placement_beside_its_prediction) {
  const auto problem = small_step();
  Placement placement(size_of(*problem).ops, 0);
  RunOptions options{.steps = 3, .warm_up = 1};
  const ExecutionResult result = run(problem, placement, {}, options);
  EXPECT_TRUE(result.fits());
  EXPECT_THAT(result.steps(), SizeIs(3));
  EXPECT_THAT(result.losses(), SizeIs(4));
  EXPECT_LE(result.low(), result.time());
  EXPECT_GT(result.predicted(), 0);
  EXPECT_EQ(Json::parse(result.to_json())["steps"], 3);
  EXPECT_EQ(result.predicted_timeline().step, result.predicted());
  EXPECT_FALSE(Json::parse(result.trace_json()).empty());
}

TEST(Run, says_where_memory_was_short) {
  const auto problem = small_step(10'000);
  RunOptions options{.steps = 1, .warm_up = 0};
  options.limit_memory = true;
  const ExecutionResult result = run(problem, Placement(size_of(*problem).ops, 0), {}, options);
  EXPECT_FALSE(result.fits());
  EXPECT_THAT(result.failure(), HasSubstr("cpu0"));
  EXPECT_EQ(result.trace_json(), "");
}

TEST(Run, ends_when_it_is_cancelled) {
  const auto problem = small_step();
  const std::atomic<bool> cancelled{true};
  RunOptions options;
  options.cancelled = &cancelled;
  EXPECT_THAT(error_text([&] { run(problem, Placement(size_of(*problem).ops, 0), {}, options); }),
              HasSubstr("cancelled"));
}

TEST(Profile, measures_a_graph_and_a_cluster) {
  ProfileOptions options{.phases = 1, .steps = 1, .warm_up = 1, .proposals = 0};
  options.busy = false;
  const ProfileResult found = profile(small_step(), options);
  CompileOptions measured;
  measured.cost = CostMode::kMeasured;
  EXPECT_NO_THROW(compile(found.graph(), found.cluster(), measured));
  EXPECT_GE(found.drift(), 1);
  EXPECT_TRUE(Json::parse(found.to_json()).contains("kinds"));
}
#endif

TEST(Run, refuses_what_is_wrong) {
  const auto problem = small_step();
  const Placement placement(size_of(*problem).ops, 0);
  const auto error = [&](const RunOptions& options) {
    return error_text([&] { run(problem, placement, {}, options); });
  };
  EXPECT_THAT(error({.steps = 0}), HasSubstr("steps 0: expected 1 or more"));
  EXPECT_THAT(error({.numbers = "int8"}), HasSubstr("numbers 'int8'"));
  EXPECT_THAT(error_text([&] { run(problem, {0, 1}); }), HasSubstr("placement"));
}

}  // namespace
}  // namespace emplace
