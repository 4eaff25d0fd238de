// Describes a graph, the devices in use, and every pair of a unit and a device by columns whose
// meaning does not depend on which graph and which devices these are.
//
// Times are in parts of the graph's own mean, memory in parts of what it keeps, speeds in parts of
// the devices' mean, so that no column grows with the size of the problem. A device's slice of a
// line through the graph is its share of the speed or of the memory of all that are used; where a
// unit lies relative to the slice is what a pair knows first. Rows of devices that are not used are
// 0. Nothing is estimated but transfers: those of the mean tensor over the mean link.
//
// O(ops x devices) once, then O(units x devices) for every set of devices.
#include "learn/features/device_view.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "placer/ranks.h"

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

// In slices.
constexpr double kFurthest = 4;
// Of 1, 2, 4 ... half periods from one end to the other.
constexpr std::int64_t kWaves = 4;

// About -1 .. 1 for ratios from 1/256 to 256.
float log_ratio(double value) {
  return static_cast<float>(std::clamp(std::log2(std::max(value, 1e-9)) / 8, -2.0, 2.0));
}

struct Slice {
  double first = 0;
  double width = 0;
};

std::vector<Slice> slices_of(const std::vector<double>& shares) {
  std::vector<Slice> slices;
  double first = 0;
  for (const double share : shares) {
    slices.push_back({first, share});
    first += share;
  }
  return slices;
}

void describe_device(double place, const Slice& slice, float* columns) {
  const double distance = (place - slice.first - slice.width / 2) / std::max(slice.width, 1e-6);
  const double near = std::clamp(distance, -kFurthest, kFurthest) / kFurthest;
  columns[0] = static_cast<float>(near);
  columns[1] = static_cast<float>(std::abs(near));
  columns[2] = std::abs(distance) <= 0.5 ? 1.0F : 0.0F;
}

std::vector<double> in_shares(std::vector<double> values) {
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  for (double& value : values) {
    value = total > 0 ? value / total : 1.0 / static_cast<double>(values.size());
  }
  return values;
}

}  // namespace

DeviceViews::DeviceViews(const UnitGraph& units)
    : units_(&units),
      time_(static_cast<std::size_t>(units.size()) * units.num_devices()),
      total_time_(units.num_devices()) {
  const Problem& problem = units.problem();
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    check_time_at(op);
    for (DeviceId device = 0; device < problem.num_devices(); ++device) {
      const auto duration = static_cast<double>(problem.duration(op, device));
      time_[static_cast<std::size_t>(units.unit_of_op(op)) * units.num_devices() + device] +=
          duration;
      total_time_[device] += duration;
    }
  }
  const std::vector<double> kept = kept_bytes(units);
  kept_ = std::accumulate(kept.begin(), kept.end(), 0.0);
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    check_time_at(unit);
    mean_time_ += static_cast<double>(units.mean_duration(unit)) / units.size();
    mean_bytes_ += static_cast<double>(units.output_bytes(unit)) / units.size();
  }
  for (const Nanoseconds rank : upward_ranks(problem)) {
    longest_path_ = std::max(longest_path_, static_cast<double>(rank));
  }
  for (std::size_t line = 0; line < kLines; ++line) {
    lines_[line] = coordinates_of(units, order_along(units, static_cast<Line>(line)), kept);
  }
}

Matrix DeviceViews::unit_features() const {
  const Matrix general = general_features(*units_);
  constexpr std::int64_t kOfPlace = 1 + kWaves;
  constexpr std::int64_t kOfLines = static_cast<std::int64_t>(kLines) * 2 * kOfPlace;
  Matrix result{.rows = general.rows, .columns = general.columns + kOfLines, .values = {}};
  result.values.reserve(static_cast<std::size_t>(result.rows * result.columns));
  const auto put_place = [&](double place) {
    result.values.push_back(static_cast<float>(2 * place - 1));
    for (std::int64_t wave = 0; wave < kWaves; ++wave) {
      const double halves = static_cast<double>(std::int64_t{1} << wave);
      result.values.push_back(static_cast<float>(std::cos(std::numbers::pi * halves * place)));
    }
  };
  for (UnitId unit = 0; unit < units_->size(); ++unit) {
    check_time_at(unit);
    for (std::int64_t column = 0; column < general.columns; ++column) {
      result.values.push_back(general.at(unit, column));
    }
    for (const Coordinates& line : lines_) {
      put_place(line.time[unit]);
      put_place(line.memory[unit]);
    }
  }
  return result;
}

std::vector<DeviceId> DeviceViews::fastest(std::size_t count) const {
  std::vector<DeviceId> devices(total_time_.size());
  std::iota(devices.begin(), devices.end(), DeviceId{0});
  std::stable_sort(devices.begin(), devices.end(),
                   [&](DeviceId a, DeviceId b) { return total_time_[a] < total_time_[b]; });
  devices.resize(std::min(count, devices.size()));
  std::sort(devices.begin(), devices.end());
  return devices;
}

double DeviceViews::capacity(DeviceId device) const {
  const Bytes memory = units_->problem().cluster().device(device).memory;
  return memory == kUnlimited ? kept_ : std::min(kept_, static_cast<double>(memory));
}

std::vector<double> DeviceViews::speeds(std::span<const DeviceId> used) const {
  std::vector<double> result;
  for (const DeviceId device : used) result.push_back(1 / std::max(1.0, total_time_[device]));
  return in_shares(std::move(result));
}

std::vector<double> DeviceViews::capacities(std::span<const DeviceId> used) const {
  std::vector<double> result;
  for (const DeviceId device : used) result.push_back(capacity(device));
  return in_shares(std::move(result));
}

double DeviceViews::exchange_cost(std::span<const DeviceId> used) const {
  double sum = 0;
  double pairs = 0;
  for (const DeviceId from : used) {
    for (const DeviceId to : used) {
      const Link* link = units_->problem().cluster().link(from, to);
      if (link == nullptr) continue;
      sum += static_cast<double>(transfer_time(*link, static_cast<Bytes>(mean_bytes_)));
      ++pairs;
    }
  }
  return pairs > 0 && mean_time_ > 0 ? sum / pairs / mean_time_ : 0;
}

DeviceView DeviceViews::of(std::span<const DeviceId> used) const {
  const std::int64_t devices = units_->num_devices();
  const auto zeros = [](std::int64_t rows, std::int64_t columns) {
    Matrix matrix{.rows = rows, .columns = columns, .values = {}};
    matrix.values.assign(static_cast<std::size_t>(rows * columns), 0);
    return matrix;
  };
  DeviceView view;
  view.used.assign(used.begin(), used.end());
  view.graph = zeros(1, DeviceView::kGraphColumns);
  view.devices = zeros(devices, DeviceView::kDeviceColumns);
  view.pairs = zeros(static_cast<std::int64_t>(units_->size()) * devices, DeviceView::kPairColumns);
  describe_graph(view);
  describe_devices(view);
  describe_pairs(view);
  return view;
}

void DeviceViews::describe_graph(DeviceView& view) const {
  double capacity_of_all = 0;
  double fastest = total_time_[view.used.front()];
  double slowest = fastest;
  for (const DeviceId device : view.used) {
    capacity_of_all += capacity(device);
    fastest = std::min(fastest, total_time_[device]);
    slowest = std::max(slowest, total_time_[device]);
  }
  const double serial = mean_time_ * units_->size();
  std::int64_t column = 0;
  const auto put = [&](float value) { view.graph.at(0, column++) = value; };
  put(log_ratio(static_cast<double>(view.used.size())));
  put(log_ratio(units_->size()) / 2);
  put(kept_ > 0 ? static_cast<float>(std::min(2.0, kept_ / std::max(1.0, capacity_of_all))) : 0);
  put(log_ratio(serial / std::max(1.0, longest_path_)));
  put(log_ratio(exchange_cost(view.used)));
  put(log_ratio(slowest / std::max(1.0, fastest)));
}

void DeviceViews::describe_devices(DeviceView& view) const {
  const std::vector<double> speed = speeds(view.used);
  const std::vector<double> memory = capacities(view.used);
  const auto count = static_cast<double>(view.used.size());
  for (std::size_t i = 0; i < view.used.size(); ++i) {
    const DeviceId device = view.used[i];
    std::vector<DeviceId> next{device};
    if (i + 1 < view.used.size()) next.push_back(view.used[i + 1]);
    std::int64_t column = 0;
    const auto put = [&](float value) { view.devices.at(device, column++) = value; };
    put(1);
    put(static_cast<float>(2 * (static_cast<double>(i) + 0.5) / count - 1));
    put(i == 0 ? 1.0F : 0.0F);
    put(i + 1 == view.used.size() ? 1.0F : 0.0F);
    put(log_ratio(speed[i] * count));
    put(log_ratio(memory[i] * count));
    put(kept_ > 0 ? static_cast<float>(capacity(device) / kept_) : 1);
    put(log_ratio(exchange_cost(next)));
  }
}

void DeviceViews::describe_pairs(DeviceView& view) const {
  const std::size_t devices = units_->num_devices();
  const std::vector<Slice> by_time = slices_of(speeds(view.used));
  const std::vector<Slice> by_memory = slices_of(capacities(view.used));
  view.allowed.assign(units_->size() * devices, 0);
  for (UnitId unit = 0; unit < units_->size(); ++unit) {
    check_time_at(unit);
    double mean = 0;
    bool any = false;
    for (const DeviceId device : view.used) {
      mean += time_[unit * devices + device] / static_cast<double>(view.used.size());
      any = any || units_->allowed(unit, device);
    }
    for (const DeviceId device : units_->allowed_devices(unit)) {
      const bool is_used = std::binary_search(view.used.begin(), view.used.end(), device);
      if (is_used || !any) view.allowed[unit * devices + device] = 1;
    }
    for (std::size_t i = 0; i < view.used.size(); ++i) {
      const std::size_t row = unit * devices + view.used[i];
      float* columns = &view.pairs.values[row * DeviceView::kPairColumns];
      *columns++ = mean > 0 ? log_ratio(time_[row] / mean) : 0;
      for (const Coordinates& line : lines_) {
        describe_device(line.time[unit], by_time[i], columns);
        describe_device(line.memory[unit], by_memory[i], columns + DeviceView::kSliceColumns);
        columns += 2 * DeviceView::kSliceColumns;
      }
    }
  }
}

}  // namespace emplace::learn
