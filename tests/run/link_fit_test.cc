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

// What a step sends is warm in caches, and there are hundreds of it.
TEST(LinkFit, many_small_tensors_do_not_decide_about_the_bandwidth) {
  Rng rng(4);
  std::vector<LinkSample> samples;
  for (Bytes bytes = 4096; bytes <= Bytes{16} << 20; bytes *= 4) {
    samples.push_back({bytes, 1000 + bytes});
  }
  for (int i = 0; i < 600; ++i) {
    samples.push_back({static_cast<Bytes>(64 + rng.below(4000)),
                       static_cast<Nanoseconds>(300 + rng.below(2700)), true});
  }
  const LinkFit fit = fit_link(samples);
  EXPECT_GT(static_cast<double>(fit.bandwidth), 0.5e9);
  EXPECT_LT(static_cast<double>(fit.bandwidth), 2e9);
  EXPECT_GT(fit.latency, 200);
  EXPECT_LT(fit.latency, 1000);
}

// A line that is twice as high as one sample is as good as one that is half as high as another.
TEST(LinkFit, quick_samples_count_no_more_than_slow_ones) {
  std::vector<LinkSample> samples;
  for (Bytes bytes = 4096; bytes <= Bytes{16} << 20; bytes *= 4) {
    const Nanoseconds time = exact_time(bytes);
    for (const Nanoseconds noisy : {time / 8, time, time, time, time * 8}) {
      samples.push_back({bytes, noisy});
    }
  }
  const LinkFit fit = fit_link(samples);
  EXPECT_GT(static_cast<double>(fit.bandwidth), 0.5e9);
  EXPECT_LT(static_cast<double>(fit.bandwidth), 3e9);
}

TEST(LinkFit, one_size_is_all_latency) {
  const LinkFit fit = fit_link({{4096, 8000}, {4096, 8000}});
  EXPECT_EQ(fit.latency, 8000);
  EXPECT_EQ(fit.bandwidth, 1'000'000'000'000'000);
  EXPECT_NEAR(fit.error, 0, 1e-9);
}

TEST(LinkFit, a_line_that_begins_below_zero_goes_through_zero) {
  const LinkFit fit = fit_link({{1000, 500}, {4000, 4000}, {16'000, 20'000}});
  EXPECT_EQ(fit.latency, 0);
  // Through zero: as many ns a byte as there are samples by the sum of x / y.
  const double per_byte = 3 / (2 + 1 + 0.8);
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
