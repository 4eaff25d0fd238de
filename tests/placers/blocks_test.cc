#include "placers/common/blocks.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(Blocks, splits_equal_work_evenly) {
  const std::vector<BlockUnit> units(4, {.work = 10});
  const std::vector<BlockDevice> devices(2);
  EXPECT_THAT(cut_into_blocks(units, devices), Optional(ElementsAre(0, 0, 1, 1)));
}

TEST(Blocks, gives_the_faster_device_more) {
  const std::vector<BlockUnit> units(4, {.work = 10});
  const std::vector<BlockDevice> devices{{.speed = 1}, {.speed = 3}};
  EXPECT_THAT(cut_into_blocks(units, devices), Optional(ElementsAre(0, 1, 1, 1)));
}

TEST(Blocks, respects_capacities_at_the_cost_of_balance) {
  const std::vector<BlockUnit> units(4, {.work = 10, .memory = 5});
  const std::vector<BlockDevice> devices{{.capacity = 5}, {.capacity = 100}};
  EXPECT_THAT(cut_into_blocks(units, devices), Optional(ElementsAre(0, 1, 1, 1)));
}

TEST(Blocks, passes_over_a_device_that_is_too_small_for_the_next_unit) {
  const std::vector<BlockUnit> units(2, {.work = 1, .memory = 5});
  const std::vector<BlockDevice> devices{{.capacity = 4}, {.capacity = 10}};
  EXPECT_THAT(cut_into_blocks(units, devices), Optional(ElementsAre(1, 1)));
}

TEST(Blocks, says_so_when_nothing_fits) {
  const std::vector<BlockUnit> units(3, {.work = 1, .memory = 5});
  const std::vector<BlockDevice> devices(2, {.capacity = 5});
  EXPECT_EQ(cut_into_blocks(units, devices), std::nullopt);
}

double bottleneck(const std::vector<BlockUnit>& units, const std::vector<BlockDevice>& devices,
                  const std::vector<std::uint32_t>& device_of_unit) {
  std::vector<double> work(devices.size(), 0);
  std::vector<Bytes> memory(devices.size(), 0);
  for (std::size_t i = 0; i < units.size(); ++i) {
    work[device_of_unit[i]] += static_cast<double>(units[i].work);
    memory[device_of_unit[i]] += units[i].memory;
  }
  double worst = 0;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (memory[d] > devices[d].capacity) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, work[d] / devices[d].speed);
  }
  return worst;
}

// Every cut into contiguous blocks, by the position of the first and of the second cut.
double best_of_all_cuts(const std::vector<BlockUnit>& units,
                        const std::vector<BlockDevice>& devices) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::uint32_t> device_of_unit(units.size());
  for (std::size_t first = 0; first <= units.size(); ++first) {
    for (std::size_t second = first; second <= units.size(); ++second) {
      for (std::size_t i = 0; i < units.size(); ++i) {
        device_of_unit[i] = i < first ? 0 : i < second ? 1 : 2;
      }
      best = std::min(best, bottleneck(units, devices, device_of_unit));
    }
  }
  return best;
}

TEST(Blocks, are_the_best_of_all_cuts_on_random_lists) {
  Rng rng(3);
  int impossible = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<BlockUnit> units(1 + rng.below(8));
    for (BlockUnit& unit : units) {
      unit = {.work = static_cast<std::int64_t>(rng.below(20)),
              .memory = static_cast<Bytes>(rng.below(5))};
    }
    std::vector<BlockDevice> devices(3);
    for (BlockDevice& device : devices) {
      device = {.speed = static_cast<double>(1 + rng.below(4)),
                .capacity = static_cast<Bytes>(rng.below(12))};
    }
    const double best = best_of_all_cuts(units, devices);
    const auto cut = cut_into_blocks(units, devices);
    ASSERT_EQ(cut.has_value(), best < std::numeric_limits<double>::infinity());
    if (!cut) {
      ++impossible;
      continue;
    }
    EXPECT_TRUE(std::is_sorted(cut->begin(), cut->end()));
    EXPECT_DOUBLE_EQ(bottleneck(units, devices, *cut), best);
  }
  EXPECT_GT(impossible, 10);  // both outcomes were met
  EXPECT_LT(impossible, 290);
}

}  // namespace
}  // namespace emplace
