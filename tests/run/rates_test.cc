#include "run/rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/batch.h"
#include "run/cluster_scale.h"
#include "support/command.h"
#include "support/error_text.h"
#include "support/fork.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Cluster machine(const std::string& preset) {
  return *read_cluster(preset);
}

TEST(Rates, are_work_over_time_and_over_the_peak_of_the_devices_used) {
  const Cluster cluster(gpu_cluster(4));  // of 1 TFLOP/s in float32
  const StepTerms terms{.work = {.samples = 8, .tokens = 800, .flops = 1e9}};
  const Rates rates = rates_of(terms, cluster, {0, 1}, 2'000'000);
  EXPECT_DOUBLE_EQ(*rates.samples_per_second, 4000);
  EXPECT_DOUBLE_EQ(*rates.tokens_per_second, 400'000);
  EXPECT_DOUBLE_EQ(*rates.flops_per_second, 5e11);
  EXPECT_DOUBLE_EQ(*rates.utilisation, 0.25) << "of 2 TFLOP/s";
  EXPECT_FALSE(rates.cost_per_step);
  EXPECT_DOUBLE_EQ(*rates_of(terms, scaled(cluster, {.speed = 2}), {0, 1}, 1'000'000).utilisation,
                   0.25);
  const Rates unknown = rates_of({}, cluster, {0}, 1000);
  EXPECT_FALSE(unknown.samples_per_second || unknown.tokens_per_second || unknown.utilisation);
}

TEST(Rates, know_what_a_step_costs) {
  const StepTerms terms{.work = {.samples = 10, .tokens = 1000},
                        .prices = Prices::parse({"p100=1.8,gpu1=3.6"})};
  const Rates rates = rates_of(terms, machine("3xp100"), {0, 1}, 2'000'000'000);
  EXPECT_DOUBLE_EQ(*rates.cost_per_hour, 5.4) << "later prices win";
  EXPECT_DOUBLE_EQ(*rates.cost_per_step, 0.003);
  EXPECT_DOUBLE_EQ(*rates.cost_per_million_samples, 300);
  EXPECT_DOUBLE_EQ(*rates.cost_per_million_tokens, 3);
}

TEST(Prices, are_of_kinds_names_and_all_that_are_no_cpus) {
  const Cluster cluster = machine("1xp100+1xcpu");
  EXPECT_DOUBLE_EQ(Prices::parse({"gpu=2"}).per_hour(cluster, {0, 1}), 2) << "the CPU comes along";
  EXPECT_DOUBLE_EQ(Prices::parse({"gpu=2", "cpu=0.5"}).per_hour(cluster, {0, 1}), 2.5);
  EXPECT_DOUBLE_EQ(Prices::parse({"p*=3"}).per_hour(cluster, {0}), 3);
  EXPECT_THAT(error_text([&] { Prices::parse({"v100=2"}).per_hour(cluster, {0}); }),
              AllOf(HasSubstr("'gpu0'"), HasSubstr("p100=1.5")));
  EXPECT_THAT(error_text([] { Prices::parse({"gpu"}); }), HasSubstr("expected DEVICES=PRICE"));
  EXPECT_THAT(error_text([] { Prices::parse({"gpu=much"}); }), HasSubstr("price of gpu"));
}

TEST(StepWork, leaves_out_what_is_computed_again) {
  const char* model = "zoo:bert-base:layers=2,hidden=64,heads=2,batch=3,sequence=16";
  const auto flops = [&](const std::vector<std::string>& recompute) {
    ProblemRequest request{.model = model, .cluster = {}};
    request.training.recompute = recompute;
    return work_of(*load_model(request).graph).flops;
  };
  EXPECT_GT(flops({}), 0);
  EXPECT_DOUBLE_EQ(flops({"bert.encoder.layer.*"}), flops({}));
}

TEST(StepWork, has_the_samples_and_tokens_that_are_known) {
  const auto of = [](const std::string& model, std::optional<std::int64_t> batch = {}) {
    const ProblemRequest request{.model = model, .cluster = {}, .batch = batch};
    return work_of(request, *load_model(request).graph);
  };
  const std::string bert = "zoo:bert-base:layers=1,hidden=64,heads=2,sequence=16,batch=3";
  EXPECT_EQ(of(bert).samples, 3);
  EXPECT_EQ(of(bert).tokens, 48);
  EXPECT_EQ(of(bert, 5).samples, 5);
  EXPECT_EQ(of(bert, 5).tokens, 80);
  EXPECT_EQ(of("zoo:alexnet:batch=9").samples, 9);
  EXPECT_EQ(of("zoo:alexnet:batch=9").tokens, 0);
  EXPECT_EQ(of(bert + ",dtype=float16").dtype, DType::kFloat16);
}

TEST(StepWork, of_a_file_that_does_not_say_has_none) {
  const ProblemRequest request{.model = EMPLACE_SOURCE_DIR "/examples/gnmt4-b256.json.gz",
                               .cluster = {}};
  const StepWork work = work_of(request, *load_model(request).graph);
  EXPECT_EQ(work.samples, 0);
  EXPECT_EQ(work.tokens, 0);
  EXPECT_GT(work.flops, 0);
}

TEST(StepWork, of_an_onnx_file_has_the_first_dimension_that_inputs_share) {
  const ProblemRequest request{
      .model = EMPLACE_SOURCE_DIR "/tests/data/captures/bert-base-b24.onnx.gz", .cluster = {}};
  EXPECT_EQ(work_of(request, *load_model(request).graph).samples, 24);
}

TEST(Batch, is_set_where_the_model_has_it) {
  const auto with = [](const std::string& model) {
    return with_batch({.model = model, .cluster = {}, .batch = 7}).model;
  };
  EXPECT_EQ(with("zoo:alexnet"), "zoo:alexnet:batch=7");
  EXPECT_EQ(with("zoo:bert-base:layers=2,batch=3"), "zoo:bert-base:layers=2,batch=7");
  EXPECT_THAT(error_text([&] { with(EMPLACE_SOURCE_DIR "/examples/gnmt4-b256.json.gz"); }),
              HasSubstr("its batch cannot be set"));
}

TEST(Batch, is_the_symbol_that_inputs_begin_with) {
  const auto input = [](const std::string& first) {
    return OnnxInput{.name = "x", .shape = {{.size = {}, .symbol = first}, {.size = 3}}};
  };
  EXPECT_EQ(batch_symbol({input("examples"), input("examples")}), "examples");
  EXPECT_EQ(batch_symbol({input("batch_size"), input("past")}), "batch_size");
  EXPECT_EQ(batch_symbol({input("a"), input("b")}), "");
  EXPECT_EQ(batch_symbol({input("")}), "");
}

TEST(ClusterScale, changes_what_it_names) {
  const Cluster cluster = machine("2xa100-nvlink@10GiB");
  const ClusterScale scale =
      ClusterScale::parse({"bandwidth=2,memory=1.5", "latency=0.5, compute=4", "speed=2"});
  const Cluster other = scaled(cluster, scale);
  EXPECT_EQ(other.link(0, 1)->bandwidth, 2 * cluster.link(0, 1)->bandwidth);
  EXPECT_EQ(other.link(0, 1)->latency, cluster.link(0, 1)->latency / 2);
  EXPECT_EQ(other.device(1).memory, cluster.device(1).memory / 2 * 3);
  EXPECT_DOUBLE_EQ(other.device(0).slowdown.to_double(), 0.5);
  EXPECT_DOUBLE_EQ(other.kind_of(0).peak_flops.at("float16"),
                   4 * cluster.kind_of(0).peak_flops.at("float16"));
  EXPECT_EQ(other.kind_of(0).memory_bandwidth, cluster.kind_of(0).memory_bandwidth);
  EXPECT_THAT(other.name(), HasSubstr("memory x1.5, bandwidth x2, latency x0.5"));
}

TEST(ClusterScale, is_refused_where_it_is_none) {
  const auto error = [](const char* text) {
    return error_text([&] { ClusterScale::parse({text}); });
  };
  EXPECT_THAT(error("bandwith=2"), HasSubstr("did you mean 'bandwidth'"));
  EXPECT_THAT(error("memory"), HasSubstr("expected RESOURCE=FACTOR"));
  EXPECT_THAT(error("memory=0"), HasSubstr("scale memory"));
}

TEST(ClusterScale, of_compute_says_that_measured_times_do_not_change) {
  const testing::TemporaryFolder folder;
  ProblemRequest request{
      .model = folder.write("one.json", R"({"format": "emplace.graph/1", "name": "one",
        "tensors": [{"bytes": 4}], "ops": [{"name": "a", "type": "mm", "inputs": [],
        "outputs": [0], "time_us": {"p100": 100}}]})"),
      .cluster = "2xp100"};
  request.scale.compute = 2;
  EXPECT_THAT(error_text([&] { load_problem(request); }),
              AllOf(HasSubstr("compute x2"), HasSubstr("are measured")));
  request.scale = {.speed = 2};
  EXPECT_EQ(load_problem(request)->duration(0, 0), 50'000);
}

// Attention maps of 1024 x 1024 go through memory, or do not. In float32 plain attention may use
// TF32, which fused attention does not.
TEST(StepTimes, fused_attention_is_about_as_fast_as_plain_or_faster) {
  for (const char* device : {"1xrtx3090", "1xp100", "1xa100", "1xl4", "1xh200"}) {
    for (const char* dtype : {"float32", "float16"}) {
      const auto step = [&](const char* attention) {
        const auto problem = load_problem(
            {.model = fmt::format("zoo:gpt2-small:layers=2,batch=8,dtype={},attention={}", dtype,
                                  attention),
             .cluster = device});
        return static_cast<double>(
            Simulator(problem).run(Placement(problem->num_ops(), 0), {}).step);
      };
      EXPECT_LT(step("fused"), 1.05 * step("plain")) << device << " " << dtype;
    }
  }
}

}  // namespace
}  // namespace emplace
