#include "zoo/published.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/presets.h"

#include "zoo/registry.h"

namespace emplace::zoo {
namespace {

using testing::HasSubstr;

TEST(Published, every_model_builds_and_has_its_parameters) {
  std::map<std::string, std::int64_t> built;  // several machines run the same model
  for (const PublishedWorkload& workload : published_workloads()) {
    const auto [at, added] = built.try_emplace(workload.model);
    if (added) {
      ModelRequest request = parse_request(workload.model);
      request.set("training", "false");
      at->second = count_parameters(build_model(request));
    }
    EXPECT_EQ(at->second, workload.parameters) << workload.system << ": " << workload.model;
  }
}

TEST(Published, every_machine_is_a_linked_cluster_with_the_memory_that_it_had) {
  for (const PublishedWorkload& workload : published_workloads()) {
    const Cluster cluster(preset_cluster(workload.cluster));
    EXPECT_TRUE(cluster.fully_linked()) << workload.cluster;
    EXPECT_GE(cluster.num_devices(), 2U) << workload.cluster;
    for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
      if (cluster.is_cpu(device)) continue;
      EXPECT_EQ(cluster.device(device).memory, workload.memory) << workload.cluster;
    }
  }
}

TEST(Published, a_system_has_each_workload_once) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const PublishedWorkload& workload : published_workloads()) {
    EXPECT_TRUE(seen.emplace(workload.system, workload.workload).second) << workload.workload;
    EXPECT_FALSE(workload.source.empty());
  }
  EXPECT_EQ(published_workloads_of("Mars").size(), 3U);
  EXPECT_EQ(published_workloads_of("Tofu").size(), 21U);
}

TEST(Published, mistakes_name_what_is_near) {
  try {
    published_workloads_of("Toffu");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'Tofu'"));
  }
}

TEST(Published, the_documented_table_has_every_workload) {
  std::ifstream file(std::filesystem::path(EMPLACE_SOURCE_DIR) / "docs" / "zoo.md");
  ASSERT_TRUE(file.is_open());
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const PublishedWorkload& workload : published_workloads()) {
    if (workload.system == "Tofu") continue;  // summed up there
    EXPECT_THAT(text, HasSubstr(fmt::format("| {} | {} | `{}` | `{}` |", workload.system,
                                            workload.workload, workload.model, workload.cluster)));
  }
}

}  // namespace
}  // namespace emplace::zoo
