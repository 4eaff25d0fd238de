#include "run/single_device.h"

#include <gtest/gtest.h>

#include "support/fork.h"

namespace emplace {
namespace {

SingleDevices try_all(const std::shared_ptr<const Problem>& problem,
                      const std::vector<DeviceId>& among = {}) {
  Evaluator evaluator(problem);
  return try_single_devices(evaluator, among);
}

TEST(SingleDevices, are_the_fastest_and_the_fastest_that_is_large_enough) {
  ClusterSpec cluster = gpu_cluster(3, 1'000'000);
  cluster.devices[0].slowdown = Decimal{3, 0};
  cluster.devices[1].slowdown = Decimal{2, 0};
  cluster.devices[2].memory = 100;
  const SingleDevices found = try_all(fork_on(cluster));
  ASSERT_TRUE(found.fastest && found.fitting);
  EXPECT_EQ(found.fastest->device, 2);
  EXPECT_EQ(found.fastest->value.step, kForkOnOne);
  EXPECT_FALSE(found.fastest->value.fits());
  EXPECT_EQ(found.fastest->capacity, 100);
  EXPECT_GT(found.fastest->used, 100);
  EXPECT_EQ(found.fitting->device, 1);
  EXPECT_EQ(found.fitting->value.step, 2 * kForkOnOne);
}

TEST(SingleDevices, are_one_where_the_fastest_is_large_enough) {
  const SingleDevices found = try_all(fork_on(gpu_cluster(3)));
  ASSERT_TRUE(found.fastest && found.fitting);
  EXPECT_EQ(found.fastest->device, 0);
  EXPECT_EQ(found.fitting->device, 0);
}

TEST(SingleDevices, are_looked_for_among_those_given) {
  ClusterSpec cluster = gpu_cluster(3);
  cluster.devices[1].slowdown = Decimal{2, 0};
  cluster.devices[2].slowdown = Decimal{3, 0};
  EXPECT_EQ(try_all(fork_on(cluster), {1, 2}).fastest->device, 1);
}

TEST(SingleDevices, are_none_where_ops_may_not_share_one) {
  const CompileOptions apart{.rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "left=gpu0"),
                                       DeviceRule::parse(DeviceRule::Kind::kPin, "right=gpu1")}};
  const SingleDevices found = try_all(fork_on(gpu_cluster(2), apart));
  EXPECT_FALSE(found.fastest);
  EXPECT_FALSE(found.fitting);
  const CompileOptions together{.rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "left=gpu1")}};
  EXPECT_EQ(try_all(fork_on(gpu_cluster(2), together)).fitting->device, 1);
}

TEST(SingleDevices, cost_an_evaluation_for_each_kind_until_one_is_large_enough) {
  Evaluator many(fork_on(gpu_cluster(8)));
  try_single_devices(many);
  EXPECT_EQ(many.evaluations(), 1) << "eight that are alike";
  Evaluator small(fork_on(gpu_cluster(8, 100)));
  EXPECT_FALSE(try_single_devices(small).fitting);
  EXPECT_EQ(small.evaluations(), 1) << "what did not fit will not elsewhere";
}

}  // namespace
}  // namespace emplace
