// emplace profile-fit, and what its file is good for.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/readers.h"
#include "support/command.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using Json = nlohmann::json;

// Products and elementwise ops of growing size, on a device of 10 TFLOP/s and 500 GB/s that takes
// 20 us to launch a kernel.
std::string measured_graph(const std::string& name, int first, const std::string& keys = "npu") {
  Json tensors = Json::array();
  Json ops = Json::array();
  const auto tensor = [&](std::int64_t rows, std::int64_t columns) {
    tensors.push_back({{"shape", {rows, columns}}, {"dtype", "float32"}});
    return tensors.size() - 1;
  };
  const auto times = [&](double us) {
    Json result;
    for (std::size_t at = 0; at < keys.size();) {
      const std::size_t end = std::min(keys.find(',', at), keys.size());
      result[keys.substr(at, end - at)] = std::max(20.0, us);
      at = end + 1;
    }
    return result;
  };
  for (int i = first; i < 40; i += 2) {
    const std::int64_t n = 128LL * (1 + i);
    const auto x = tensor(n, n);
    const auto w = tensor(n, n);
    const auto y = tensor(n, n);
    const auto z = tensor(n, n);
    const auto cube = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    const auto square = static_cast<double>(n) * static_cast<double>(n);
    ops.push_back({{"name", fmt::format("x{}", i)},
                   {"type", "input"},
                   {"inputs", Json::array()},
                   {"outputs", {x}}});
    ops.push_back({{"name", fmt::format("w{}", i)},
                   {"type", "parameter"},
                   {"inputs", Json::array()},
                   {"outputs", {w}}});
    ops.push_back({{"name", fmt::format("mm{}", i)},
                   {"type", "mm"},
                   {"inputs", {x, w}},
                   {"outputs", {y}},
                   {"flops", 2 * n * n * n},
                   {"time_us", times(2 * cube / 1e7)}});
    ops.push_back({{"name", fmt::format("relu{}", i)},
                   {"type", "relu"},
                   {"inputs", {y}},
                   {"outputs", {z}},
                   {"time_us", times(8 * square / 5e5)}});
  }
  return Json{{"format", "emplace.graph/1"}, {"name", name}, {"tensors", tensors}, {"ops", ops}}
      .dump();
}

class ProfileFit : public ::testing::Test {
 protected:
  ProfileFit() {
    folder_.write("even.json", measured_graph("even", 0));
    folder_.write("odd.json", measured_graph("odd", 1));
    folder_.write("two.json", measured_graph("two", 0, "npu,h200"));
  }
  TemporaryFolder folder_;
};

TEST_F(ProfileFit, writes_a_cluster_whose_kind_tells_the_measured_times) {
  const CommandResult fit = folder_.emplace("profile-fit even.json odd.json -o npu.yaml");
  ASSERT_EQ(fit.exit_code, 0) << fit.err;
  EXPECT_THAT(fit.out, AllOf(HasSubstr("even"), HasSubstr("left out"), HasSubstr("elementwise"),
                             HasSubstr("matmul"), HasSubstr("--cluster npu.yaml")));
  const Cluster cluster = read_cluster_yaml(folder_.read("npu.yaml"));
  ASSERT_EQ(cluster.num_devices(), 1U);
  EXPECT_EQ(cluster.device(0).kind, "npu");
  EXPECT_NEAR(cluster.kind_of(0).launch_us, 20, 2);
  EXPECT_THAT(cluster.kind_of(0).source, HasSubstr("2 measured graphs"));
  // The same graph, timed by the model alone.
  const CommandResult placed =
      folder_.emplace("place even.json --cluster npu.yaml --placer single --cost analytic --json");
  ASSERT_EQ(placed.exit_code, 0) << placed.err;
  const CommandResult measured =
      folder_.emplace("place even.json --cluster npu.yaml --placer single --json");
  const double ratio = Json::parse(placed.out)["step_ns"].get<double>() /
                       Json::parse(measured.out)["step_ns"].get<double>();
  EXPECT_NEAR(ratio, 1, 0.1);
}

TEST_F(ProfileFit, one_graph_has_none_to_leave_out) {
  const CommandResult fit = folder_.emplace("profile-fit even.json --name mine -o mine.yaml");
  ASSERT_EQ(fit.exit_code, 0) << fit.err;
  EXPECT_THAT(fit.out, ::testing::Not(HasSubstr("left out")));
  EXPECT_EQ(read_cluster_yaml(folder_.read("mine.yaml")).device(0).kind, "mine");
}

TEST_F(ProfileFit, starts_from_the_peaks_of_a_known_kind) {
  const CommandResult like = folder_.emplace("profile-fit even.json --like v100 -o like.yaml");
  ASSERT_EQ(like.exit_code, 0) << like.err;
  EXPECT_EQ(read_cluster_yaml(folder_.read("like.yaml")).kind_of(0).peak_flops.at("float32"),
            15.7e12);
  const CommandResult named = folder_.emplace("profile-fit two.json --kind h200 -o h200.yaml");
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_THAT(named.out, HasSubstr("--cluster 4xh200 --kinds h200.yaml"));
  EXPECT_EQ(read_cluster_yaml(folder_.read("h200.yaml")).kind_of(0).peak_flops.at("tf32"),
            494.7e12);
}

TEST_F(ProfileFit, kinds_of_the_file_replace_those_of_a_preset) {
  ASSERT_EQ(folder_.emplace("profile-fit two.json --kind h200 -o h200.yaml").exit_code, 0);
  const auto step = [&](const std::string& more) {
    const CommandResult result = folder_.emplace(
        "place two.json --cluster 1xh200 --cost analytic --placer single --json " + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out)["step_ns"].get<double>();
  };
  EXPECT_GT(step("--kinds h200.yaml"), 5 * step(""));
  const CommandResult other =
      folder_.emplace("place two.json --cluster 1xp100 --kinds h200.yaml --placer single");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("h200.yaml: has no kind"));
}

TEST_F(ProfileFit, mistakes_are_named) {
  const auto error = [&](const std::string& arguments) {
    const CommandResult result = folder_.emplace("profile-fit " + arguments + " -o out.yaml");
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_FALSE(folder_.has("out.yaml")) << arguments;
    return result.err;
  };
  EXPECT_THAT(error("two.json"), AllOf(HasSubstr("--kind"), HasSubstr("h200, npu")));
  EXPECT_THAT(error("two.json --kind npx"), HasSubstr("did you mean 'npu'"));
  EXPECT_THAT(error("two.json even.json --kind h200"), HasSubstr("even.json: has no times of"));
  EXPECT_THAT(error("even.json --like h20"), HasSubstr("did you mean 'h200'"));
  folder_.write("none.json",
                R"({"format": "emplace.graph/1", "name": "none", "tensors": [{"bytes": 4}],
                    "ops": [{"name": "a", "type": "relu", "inputs": [], "outputs": [0]}]})");
  EXPECT_THAT(error("none.json"), HasSubstr("no measured times"));
  EXPECT_THAT(error("missing.json"), HasSubstr("missing.json"));
}

TEST_F(ProfileFit, fusing_shortens_a_step) {
  folder_.write("chain.json", R"({"format": "emplace.graph/1", "name": "chain",
    "tensors": [{"shape": [1000000], "dtype": "float32"}, {"shape": [1000000], "dtype": "float32"},
                {"shape": [1000000], "dtype": "float32"}],
    "ops": [{"name": "x", "type": "input", "inputs": [], "outputs": [0]},
            {"name": "a", "type": "relu", "inputs": [0], "outputs": [1]},
            {"name": "b", "type": "tanh", "inputs": [1], "outputs": [2]}]})");
  const auto step = [&](const std::string& more) {
    const CommandResult result =
        folder_.emplace("place chain.json --cluster 1xp100 --placer single --json " + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out)["step_ns"].get<double>();
  };
  EXPECT_NEAR(step("--fuse") / step(""), 0.5, 0.02);
}

}  // namespace
}  // namespace emplace
