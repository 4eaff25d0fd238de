#include "learn/features/device_view.h"

#include <cmath>

#include <gtest/gtest.h>

#include "learn/units/groupings.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kByTime = DeviceView::distance_column(Line::kDepth) + 1;  // within the slice
constexpr std::int64_t kByMemory = kByTime + DeviceView::kSliceColumns;

// Ops of 1 us and 1000 bytes, on devices that are so many times slower.
std::shared_ptr<const Problem> viewed_chain_on(const std::vector<std::int64_t>& slowdowns,
                                               const std::vector<Bytes>& memory = {}) {
  TimedGraph graph;
  TensorId at = graph.op("op0", 1, {});
  for (int i = 1; i < 30; ++i) at = graph.op(std::string("op").append(std::to_string(i)), 1, {at});
  ClusterSpec spec = gpu_cluster(static_cast<int>(slowdowns.size()));
  for (std::size_t i = 0; i < slowdowns.size(); ++i) {
    spec.devices[i].slowdown = Decimal{slowdowns[i], 0};
    if (!memory.empty()) spec.devices[i].memory = memory[i];
  }
  return compile_timed(graph.build(), spec);
}

// The units within the device's slice.
std::vector<UnitId> within(const DeviceView& view, const UnitGraph& units, DeviceId device,
                           std::int64_t column) {
  std::vector<UnitId> result;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    const std::int64_t row = static_cast<std::int64_t>(unit) * units.num_devices() + device;
    if (view.pairs.at(row, column) == 1) result.push_back(unit);
  }
  return result;
}

TEST(DeviceView, has_the_same_columns_for_all_graphs_and_devices) {
  Rng rng(1);
  std::int64_t columns = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const auto problem = random_problem(rng);
    const UnitGraph units = group_by_colocation(*problem);
    const DeviceViews views(units);
    const std::int64_t devices = problem->num_devices();
    const DeviceView view = views.of(views.fastest(1 + rng.below(problem->num_devices())));
    const Matrix features = views.unit_features();
    if (columns == 0) columns = features.columns;
    EXPECT_EQ(features.columns, columns);
    EXPECT_EQ(features.rows, units.size());
    EXPECT_EQ(view.graph.columns, DeviceView::kGraphColumns);
    EXPECT_EQ(view.devices.rows, devices);
    EXPECT_EQ(view.devices.columns, DeviceView::kDeviceColumns);
    EXPECT_EQ(view.pairs.rows, units.size() * devices);
    EXPECT_EQ(view.pairs.columns, DeviceView::kPairColumns);
    for (const Matrix* matrix : {&features, &view.graph, &view.devices, &view.pairs}) {
      ASSERT_EQ(matrix->values.size(), static_cast<std::size_t>(matrix->rows * matrix->columns));
      for (const float value : matrix->values) EXPECT_LE(std::abs(value), 2);
    }
  }
}

TEST(GeneralFeatures, have_the_same_names_for_all_graphs) {
  const auto names_of = [](const Problem& problem) {
    FeatureNames names;
    const Matrix features = general_features(group_by_colocation(problem), &names);
    EXPECT_EQ(names.columns.size(), static_cast<std::size_t>(features.columns));
    return names.columns;
  };
  Rng rng(2);
  const std::vector<std::string> first = names_of(*viewed_chain_on({1, 1}));
  EXPECT_FALSE(first.empty());
  for (int trial = 0; trial < 20; ++trial) EXPECT_EQ(names_of(*random_problem(rng)), first);
}

TEST(DeviceView, gives_a_device_that_is_twice_as_fast_a_slice_twice_as_wide) {
  const auto problem = viewed_chain_on({2, 1});
  const UnitGraph units = group_by_colocation(*problem);
  const DeviceView view = DeviceViews(units).of(std::vector<DeviceId>{0, 1});
  const std::vector<UnitId> slow = within(view, units, 0, kByTime);
  const std::vector<UnitId> fast = within(view, units, 1, kByTime);
  ASSERT_EQ(slow.size(), 10U);
  ASSERT_EQ(fast.size(), 20U);
  EXPECT_EQ(slow.front(), 0U);
  EXPECT_EQ(fast.front(), 10U);
  // There is room for all of it on each, so memory makes no difference.
  EXPECT_EQ(within(view, units, 0, kByMemory).size(), 15U);
}

TEST(DeviceView, gives_a_device_of_twice_the_memory_a_slice_twice_as_wide) {
  const auto problem = viewed_chain_on({1, 1}, {10'000, 20'000});
  const UnitGraph units = group_by_colocation(*problem);
  const DeviceView view = DeviceViews(units).of(std::vector<DeviceId>{0, 1});
  EXPECT_EQ(within(view, units, 0, kByMemory).size(), 10U);
  EXPECT_EQ(within(view, units, 1, kByMemory).size(), 20U);
  EXPECT_EQ(within(view, units, 0, kByTime).size(), 15U);
}

TEST(DeviceView, says_nothing_of_devices_that_are_not_used) {
  const auto problem = viewed_chain_on({1, 1, 1});
  const UnitGraph units = group_by_colocation(*problem);
  const DeviceView view = DeviceViews(units).of(std::vector<DeviceId>{0, 2});
  EXPECT_EQ(view.used, (std::vector<DeviceId>{0, 2}));
  for (std::int64_t column = 0; column < DeviceView::kDeviceColumns; ++column) {
    EXPECT_EQ(view.devices.at(1, column), 0);
  }
  EXPECT_EQ(view.devices.at(0, 0), 1);
  EXPECT_EQ(view.devices.at(2, 0), 1);
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    const std::size_t row = std::size_t{unit} * 3;
    for (std::int64_t column = 0; column < DeviceView::kPairColumns; ++column) {
      EXPECT_EQ(view.pairs.at(static_cast<std::int64_t>(row) + 1, column), 0);
    }
    EXPECT_EQ(view.allowed[row], 1);
    EXPECT_EQ(view.allowed[row + 1], 0);
    EXPECT_EQ(view.allowed[row + 2], 1);
  }
  // The two share the line between them.
  EXPECT_EQ(within(view, units, 0, kByTime).size(), 15U);
  EXPECT_EQ(within(view, units, 2, kByTime).size(), 15U);
}

TEST(DeviceView, lets_units_be_where_they_may_where_that_is_not_used) {
  TimedGraph graph;
  const TensorId a = graph.op("anywhere", 1, {});
  const TensorId b =
      graph.add({.name = "b", .type = "compute", .inputs = {a}, .devices = {"gpu1"}}, 1);
  graph.add({.name = "c", .type = "compute", .inputs = {b}, .devices = {"gpu0", "gpu1"}}, 1);
  const auto problem = compile_timed(graph.build(), gpu_cluster(3));
  const UnitGraph units = group_by_colocation(*problem);
  ASSERT_EQ(units.size(), 3U);
  const DeviceView view = DeviceViews(units).of(std::vector<DeviceId>{0, 2});
  EXPECT_EQ(view.allowed, (std::vector<std::uint8_t>{1, 0, 1,  //
                                                     0, 1, 0,  //
                                                     1, 0, 0}));
}

TEST(DeviceViews, name_the_fastest_devices) {
  const auto problem = viewed_chain_on({3, 1, 2, 1});
  const UnitGraph units = group_by_colocation(*problem);
  const DeviceViews views(units);
  EXPECT_EQ(views.fastest(1), (std::vector<DeviceId>{1}));
  EXPECT_EQ(views.fastest(2), (std::vector<DeviceId>{1, 3}));
  EXPECT_EQ(views.fastest(3), (std::vector<DeviceId>{1, 2, 3}));
  EXPECT_EQ(views.fastest(9), (std::vector<DeviceId>{0, 1, 2, 3}));
}

TEST(DeviceViews, sum_what_ops_take) {
  const auto problem = viewed_chain_on({3, 1});
  const UnitGraph units = group_by_colocation(*problem);
  const DeviceViews views(units);
  EXPECT_EQ(views.time(7, 0), 3000);
  EXPECT_EQ(views.time(7, 1), 1000);
  EXPECT_EQ(views.total_time(0), 90'000);
  EXPECT_EQ(views.total_time(1), 30'000);
}

}  // namespace
}  // namespace emplace::learn
