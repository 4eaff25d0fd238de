#include "cluster/own_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Places = std::vector<std::string>;

std::shared_ptr<const Cluster> cluster_of(const std::vector<Places>& devices) {
  ClusterSpec spec;
  spec.name = "test";
  for (const Places& places : devices) {
    Device device{.name = "d" + std::to_string(spec.devices.size()), .kind = "cpu"};
    if (!places.empty()) device.runs_on = places.front();
    for (std::size_t i = 1; i < places.size(); ++i) device.also_runs_on.push_back(places[i]);
    spec.devices.push_back(std::move(device));
  }
  return std::make_shared<const Cluster>(std::move(spec));
}

Places places_of(const OwnDevices& own) {
  Places places;
  for (const Device& device : own.cluster->spec().devices) places.push_back(device.runs_on);
  return places;
}

TEST(OwnDevices, are_the_first_places_of_one_rank) {
  const auto cluster = cluster_of({{"cores 0", "cores 2"}, {"cores 1", "cores 3"}});
  const OwnDevices own = devices_of_rank(cluster, 0, 1);
  EXPECT_THAT(places_of(own), ElementsAre("cores 0", "cores 1"));
  EXPECT_THAT(own.cores_of_others, IsEmpty());
  EXPECT_THAT(places_of(devices_of_rank(cluster_of({{}}), 0, 1)), ElementsAre(""));
}

TEST(OwnDevices, are_apart_from_those_of_others) {
  const auto cluster =
      cluster_of({{"cores 0", "cores 2", "cores 9"}, {"cores 1,5", "cores 3", "cores 8"}});
  const OwnDevices first = devices_of_rank(cluster, 0, 2);
  EXPECT_THAT(places_of(first), ElementsAre("cores 0", "cores 1,5"));
  EXPECT_THAT(first.cores_of_others, ElementsAre(2, 3));  // the third is not there
  const OwnDevices second = devices_of_rank(cluster, 1, 2);
  EXPECT_THAT(places_of(second), ElementsAre("cores 2", "cores 3"));
  EXPECT_THAT(second.cores_of_others, ElementsAre(0, 1, 5));
  EXPECT_THAT(second.warnings, IsEmpty());
  EXPECT_EQ(second.cluster->name(), "test");
}

TEST(OwnDevices, that_share_a_core_are_warned_of) {
  const auto cluster = cluster_of({{"cores 0", "cores 2"}, {"cores 0", "cores 0"}});
  EXPECT_THAT(devices_of_rank(cluster, 0, 2).warnings,
              ElementsAre(AllOf(HasSubstr("ranks 0 and 1"), HasSubstr("core 0"))));
}

TEST(OwnDevices, that_are_missing_or_taken_are_refused) {
  EXPECT_THAT(error_text([] {
                devices_of_rank(cluster_of({{"cores 0", "cores 2"}, {"cores 1", "cores 3"}}), 0, 3);
              }),
              AllOf(HasSubstr("device 'd0'"), HasSubstr("places: 2"), HasSubstr("3 ranks")));
  EXPECT_THAT(error_text([] {
                devices_of_rank(cluster_of({{"cores 0"}, {}}), 1, 2);
              }),
              HasSubstr("device 'd0'"));
  EXPECT_THAT(error_text([] {
                devices_of_rank(cluster_of({{"cuda:0", "cuda:1"}, {"cuda:1", "cuda:2"}}), 0, 2);
              }),
              AllOf(HasSubstr("device 'd0'"), HasSubstr("cuda:1"), HasSubstr("two ranks")));
}

TEST(OwnDevices, have_as_many_places_as_each_other) {
  EXPECT_THAT(error_text([] {
                cluster_of({{"cores 0", "cores 2"}, {}, {"cores 1"}});
              }),
              AllOf(HasSubstr("device 'd2'"), HasSubstr("places: 1"), HasSubstr("expected 2")));
  EXPECT_THAT(error_text([] {
                cluster_of({{"cores 0", "there"}});
              }),
              AllOf(HasSubstr("device 'd0'"), HasSubstr("'there'")));
  EXPECT_THAT(error_text([] { cluster_of({{"", "cores 1"}}); }), HasSubstr("device 'd0'"));
}

}  // namespace
}  // namespace emplace
