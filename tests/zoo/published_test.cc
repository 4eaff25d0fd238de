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

#include "cost/problem.h"

#include "sim/simulator.h"

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

bool fits_one_gpu(const PublishedWorkload& workload) {
  const auto problem = compile(std::make_shared<const Graph>(build_model(workload.model)),
                               std::make_shared<const Cluster>(preset_cluster(workload.cluster)));
  return Simulator(problem).run(Placement(problem->num_ops(), 0), {}).fits();
}

// What the papers say of one GPU.
TEST(Published, the_same_models_fit_one_gpu_as_published) {
  const std::map<std::pair<std::string, std::string>, bool> published{
      {{"ColocRL", "RNNLM, 2 GPUs"}, true},
      {{"ColocRL", "NMT, 2 GPUs"}, false},
      {{"HDP", "ResNet-152"}, true},
      {{"HDP", "NMT, 2 layers"}, false},
      {{"Mars", "Inception-V3"}, true},
      {{"Mars", "GNMT-4"}, false},
      {{"Mars", "BERT"}, false},
  };
  int found = 0;
  for (const PublishedWorkload& workload : published_workloads()) {
    const auto at = published.find({workload.system, workload.workload});
    if (at == published.end()) continue;
    ++found;
    EXPECT_EQ(fits_one_gpu(workload), at->second) << workload.system << ": " << workload.workload;
  }
  EXPECT_EQ(found, 7);
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
