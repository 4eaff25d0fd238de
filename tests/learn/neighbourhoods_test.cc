#include "learn/policies/neighbourhoods.h"

#include <gtest/gtest.h>

namespace emplace::learn {
namespace {

constexpr double kForbidden = -1e9;

torch::Tensor integers(const std::vector<std::int64_t>& values) {
  return to_tensor(values, torch::kCPU);
}

// Two units in each of two neighbourhoods, on three devices.
class NeighbourhoodsOfTwo : public testing::Test {
 protected:
  const Neighbourhoods neighbourhoods_{integers({0, 0, 1, 1}), /*pull=*/20};
  torch::Tensor logits_ = torch::zeros({4, 3});
  torch::Tensor mask_ = torch::zeros({4, 3});
  Rng rng_{5};
};

TEST_F(NeighbourhoodsOfTwo, units_follow) {
  const Samples samples = neighbourhoods_.sample(logits_, mask_, 64, rng_);
  const torch::Tensor units = neighbourhoods_.unit_actions(samples.actions);
  ASSERT_EQ(samples.actions.size(1), 6);
  EXPECT_TRUE(units.select(1, 0).equal(samples.actions.select(1, 0)));
  EXPECT_TRUE(units.select(1, 1).equal(samples.actions.select(1, 0)));
  EXPECT_TRUE(units.select(1, 3).equal(samples.actions.select(1, 1)));
  EXPECT_FALSE(units.select(1, 0).equal(units.select(1, 3))) << "neighbourhoods draw by themselves";
  EXPECT_NEAR(samples.log_probs.sum(1).exp().mean().item<double>(), 1.0 / 9, 1e-4);
}

TEST_F(NeighbourhoodsOfTwo, a_unit_that_is_sure_goes_elsewhere) {
  logits_[1][2] = 60;
  logits_[0][0] = 90;
  logits_[2][0] = logits_[3][0] = 1;
  const Samples likeliest = neighbourhoods_.likeliest(logits_, mask_);
  EXPECT_TRUE(likeliest.actions.equal(integers({0, 0, 0, 2, 0, 0}).unsqueeze(0)));
}

TEST_F(NeighbourhoodsOfTwo, nobody_goes_where_it_may_not) {
  // Nobody of the first neighbourhood may be on device 1, and its units have no device in common.
  mask_[0][1] = mask_[0][2] = kForbidden;
  mask_[1][0] = mask_[1][1] = kForbidden;
  const Samples samples = neighbourhoods_.sample(logits_, mask_, 64, rng_);
  const torch::Tensor units = neighbourhoods_.unit_actions(samples.actions);
  EXPECT_FALSE((samples.actions.select(1, 0) == 1).any().item<bool>());
  EXPECT_TRUE((units.select(1, 0) == 0).all().item<bool>());
  EXPECT_TRUE((units.select(1, 1) == 2).all().item<bool>());
  const Scores scores = neighbourhoods_.score(logits_, mask_, samples);
  EXPECT_TRUE(torch::allclose(scores.log_probs, samples.log_probs, 1e-5, 1e-6));
  // One of two devices, then one of three; the rest is certain.
  EXPECT_NEAR(scores.log_probs.sum(1).exp().mean().item<double>(), 1.0 / 6, 1e-4);
}

TEST_F(NeighbourhoodsOfTwo, are_where_most_of_their_units_are) {
  const Neighbourhoods uneven(integers({0, 0, 0, 1}), 1);
  EXPECT_TRUE(uneven.actions_for(integers({2, 1, 2, 0}).unsqueeze(0), 3)
                  .equal(integers({2, 0, 2, 1, 2, 0}).unsqueeze(0)));
}

}  // namespace
}  // namespace emplace::learn
