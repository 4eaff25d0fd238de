// Placing and ordering the tasks of one step as an integer program: on which device each unit is,
// when each task starts, and which of two tasks on one device comes first (the latency model of
// Tarnawski et al., NeurIPS 2020, with the order on devices that ours need).
//
// Two things are left out, which can only make the optimum lower: transfers do not wait for each
// other on their channels, and memory counts what its caller says. So the program's bound holds for
// the simulator as well.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "lp/integer_program.h"

namespace emplace {

struct ScheduleTasks {
  struct Task {
    std::uint32_t unit = 0;
    std::vector<Nanoseconds> duration;  // by device; 0: the task needs no device
  };
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    // How long the data take, by ordered pair of devices; kNoLink where they cannot go. Empty: at
    // once, wherever the two are.
    std::vector<Nanoseconds> length = {};
  };
  static constexpr Nanoseconds kNoLink = -1;

  DeviceId num_devices = 0;
  std::vector<Nanoseconds> gap;                // by device: after a task
  std::vector<Bytes> capacity;                 // by device
  std::vector<std::vector<DeviceId>> allowed;  // by unit
  std::vector<Bytes> memory;                   // by unit
  std::vector<Task> tasks;                     // all edges lead to later tasks
  std::vector<Edge> edges;
  Nanoseconds step = 1;  // every time is a multiple of it

  std::uint32_t num_units() const { return static_cast<std::uint32_t>(allowed.size()); }
};

class ScheduleProgram {
 public:
  // Begins from the units' devices in `start`. Steps above `upper` are of no interest.
  ScheduleProgram(const ScheduleTasks& tasks, std::vector<DeviceId> start, Nanoseconds upper);

  int num_columns() const { return program_.num_columns(); }

  struct Schedule {
    std::vector<DeviceId> device_of;  // by unit
    std::vector<double> start;        // by task, in any unit
  };
  struct Limits {
    std::int64_t nodes = std::numeric_limits<int>::max();
    double seconds = 1e9;
    std::function<bool(std::int64_t nodes)> stop = {};
    std::function<bool()> stop_inside = {};                 // of linear programs
    std::function<void(const Schedule&)> on_solution = {};  // told of all that the solver finds
  };
  struct Result {
    bool finished = false;
    Nanoseconds lower_bound = 0;  // of all steps; `upper` where it is at least that
    std::int64_t nodes = 0;
  };
  Result solve(const Limits& limits) const;

 private:
  bool are_twins(DeviceId a, DeviceId b) const;
  bool same_links(const std::vector<Nanoseconds>& length, DeviceId a, DeviceId b) const;
  void break_symmetry();
  void schedule_start();
  void find_paths();
  void add_places();
  void add_times();
  void add_edge(const ScheduleTasks::Edge& edge);
  Nanoseconds shortest(const ScheduleTasks::Edge& edge) const;
  void add_lengths(const ScheduleTasks::Edge& edge, Nanoseconds least,
                   const IntegerProgram::Row& after);
  int apart(std::uint32_t a, std::uint32_t b);
  void add_orders();
  void add_order(std::uint32_t a, std::uint32_t b);
  std::size_t pair(DeviceId from, DeviceId to) const {
    return static_cast<std::size_t>(from) * tasks_.num_devices + to;
  }
  int place(std::uint32_t unit, DeviceId device) const {
    return places_[static_cast<std::size_t>(unit) * tasks_.num_devices + device];
  }
  int new_column(int column, double value) {
    values_.push_back(value);
    return column;
  }
  double scaled(Nanoseconds time) const { return static_cast<double>(time) / unit_; }
  // The time of a task, or with the gap behind it, on the device that it is on.
  void add_duration(IntegerProgram::Row& row, std::uint32_t task, bool with_gap, double sign) const;
  Schedule read(const std::vector<double>& values) const;

  const ScheduleTasks& tasks_;
  std::vector<DeviceId> start_;
  Nanoseconds upper_;
  double unit_ = 1;
  std::vector<std::vector<DeviceId>> possible_;  // by unit: allowed, symmetry broken
  std::vector<Nanoseconds> start_time_;          // by task, of the start
  std::vector<Nanoseconds> start_end_;
  std::vector<Nanoseconds> head_;          // by task: no start is earlier
  std::vector<Nanoseconds> tail_;          // by task: the step goes on for so long after its end
  std::vector<std::vector<bool>> before_;  // [a][b]: a path leads from a to b

  IntegerProgram program_;
  int step_ = 0;             // columns
  std::vector<int> places_;  // [unit][device], or -1
  std::vector<int> times_;   // by task
  std::vector<int> apart_;   // [unit][unit], or -1
  std::vector<double> values_;
};

}  // namespace emplace
