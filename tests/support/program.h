// A fixture for tests that run the built emplace as a person would, and what they place.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.h"

namespace emplace::testing {

// Two ops, one after the other, of 100 and 50 us.
inline constexpr const char* kChain = R"({"format": "emplace.graph/1", "name": "chain",
  "tensors": [{"bytes": 760000}, {"bytes": 760000}, {"bytes": 4}],
  "ops": [
    {"name": "w", "type": "parameter", "inputs": [], "outputs": [0]},
    {"name": "a", "type": "mm", "inputs": [0], "outputs": [1], "time_us": {"gpu": 100}},
    {"name": "b", "type": "mm", "inputs": [1], "outputs": [2], "time_us": {"gpu": 50}}]})";

// Two devices, d0 and d1; what else is to be said of them and of their link.
inline std::string pair_of_devices(const std::string& link = "bandwidth: 7.6GB/s",
                                   const std::string& device = "count: 2") {
  return R"(format: emplace.cluster/1
name: pair
kinds: {gpu: {peak_flops: {float32: 1e12}, memory_bandwidth: 100GB/s, memory: 1GiB, launch_us: 1}}
devices: [{name: d, kind: gpu, )" +
         device + R"(}]
links: [{from: "*", to: "*", )" +
         link + R"(, channel: out}]
)";
}

class Program : public ::testing::Test {
 protected:
  CommandResult run(const std::string& arguments) const { return folder_.emplace(arguments); }

  nlohmann::json json_of(const std::string& arguments) const {
    const CommandResult result = run(arguments + " --json");
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.err;
    return nlohmann::json::parse(result.out);
  }

  // The command fails with exit code 2, says each of these, and writes nothing.
  void expect_refused(const std::string& arguments,
                      const std::vector<std::string>& messages) const {
    const std::size_t files = folder_.num_files();
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.err;
    EXPECT_THAT(result.out, ::testing::IsEmpty()) << arguments;
    for (const std::string& message : messages) {
      EXPECT_THAT(result.err, ::testing::HasSubstr(message)) << arguments;
    }
    EXPECT_EQ(folder_.num_files(), files) << arguments;
  }

  TemporaryFolder folder_;
};

}  // namespace emplace::testing
