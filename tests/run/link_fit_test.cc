#include "run/link_fit.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace emplace {
namespace {

// 10 us and a byte per nanosecond.
Nanoseconds exact_time(Bytes bytes) {
  return 10'000 + bytes;
}

std::vector<LinkSample> exact_samples() {
  std::vector<LinkSample> samples;
  for (Bytes bytes = 4096; bytes <= Bytes{16} << 20; bytes *= 4) {
    samples.push_back({bytes, exact_time(bytes)});
  }
  return samples;
}

TEST(LinkFit, finds_the_line_that_samples_are_on) {
  const LinkFit fit = fit_link(exact_samples());
  EXPECT_EQ(fit.latency, 10'000);
  EXPECT_EQ(fit.bandwidth, 1'000'000'000);
  EXPECT_NEAR(fit.error, 0, 1e-9);
}

TEST(LinkFit, evens_out_noise_and_says_how_much_there_is) {
  Rng rng(3);
  std::vector<LinkSample> samples;
  for (int i = 0; i < 200; ++i) {
    for (LinkSample sample : exact_samples()) {
      const double noise = 0.9 + 0.2 * rng.uniform();
      sample.time = static_cast<Nanoseconds>(noise * static_cast<double>(sample.time));
      samples.push_back(sample);
    }
  }
  const LinkFit fit = fit_link(samples);
  EXPECT_NEAR(static_cast<double>(fit.latency), 10'000, 300);
  EXPECT_NEAR(static_cast<double>(fit.bandwidth), 1e9, 3e7);
  // Of numbers between -0.1 and 0.1.
  EXPECT_NEAR(fit.error, 0.1 / std::sqrt(3.0), 0.01);
}

// Each counts by how far the line is off relative to it, so small tensors are not drowned.
TEST(LinkFit, small_tensors_count_as_much_as_large_ones) {
  const LinkFit fit = fit_link({{1000, 12'000}, {2000, 13'000}, {100'000'000, 150'000'000}});
  const double small =
      static_cast<double>(fit.latency) + 1000 * 1e9 / static_cast<double>(fit.bandwidth);
  EXPECT_NEAR(small, 12'000, 600);
}

TEST(LinkFit, one_size_is_all_latency) {
  const LinkFit fit = fit_link({{4096, 8000}, {4096, 8000}});
  EXPECT_EQ(fit.latency, 8000);
  EXPECT_EQ(fit.bandwidth, 1'000'000'000'000'000);
  EXPECT_NEAR(fit.error, 0, 1e-9);
}

TEST(LinkFit, a_line_that_begins_below_zero_goes_through_zero) {
  const LinkFit fit = fit_link({{1000, 500}, {2000, 2000}, {4000, 5000}});
  EXPECT_EQ(fit.latency, 0);
  // The least relative squares through zero: sum(x / y) / sum((x / y)^2) ns a byte.
  const double per_byte = (2 + 1 + 0.8) / (4 + 1 + 0.64);
  EXPECT_NEAR(static_cast<double>(fit.bandwidth), 1e9 / per_byte, 1);
  EXPECT_GT(fit.error, 0.1);
}

TEST(LinkFit, a_line_that_falls_is_flat) {
  const LinkFit fit = fit_link({{1000, 3000}, {1'000'000, 2000}});
  EXPECT_GT(fit.latency, 2000);
  EXPECT_LT(fit.latency, 3000);
  EXPECT_EQ(fit.bandwidth, 1'000'000'000'000'000);
}

TEST(LinkFit, what_takes_no_time_is_no_division_by_zero) {
  const LinkFit fit = fit_link({{1000, 0}, {2000, 0}});
  EXPECT_LE(fit.latency, 1);
  EXPECT_GT(fit.bandwidth, 0);
}

}  // namespace
}  // namespace emplace
