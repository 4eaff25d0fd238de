// The assignment of a stream's items to devices as an integer program, after Tarnawski et al.,
// "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, without their
// condition that parts be consecutive. For items x devices there is a choice, for each net and each
// device, or each pair of devices where links differ, whether it is sent there; the period is at
// least every load.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "lp/integer_program.h"
#include "stream/level.h"

namespace emplace {

class AssignmentProgram {
 public:
  // Begins from `start`, and leaves the items that are not `free` where they are there (empty: all
  // are free). Periods above that of the start are of no interest, where it fits.
  AssignmentProgram(const StreamLevel& level, std::vector<DeviceId> start,
                    const std::vector<bool>& free = {});

  int num_columns() const { return program_.num_columns(); }

  struct Limits {
    std::int64_t nodes = std::numeric_limits<int>::max();
    double seconds = 1e9;
    std::function<bool(std::int64_t nodes)> stop = {};
    std::function<bool()> stop_inside = {};  // of linear programs
    // Told of every assignment that the solver finds.
    std::function<void(const std::vector<DeviceId>& device_of)> on_solution = {};
  };
  struct Result {
    std::vector<DeviceId> device_of;  // the best known
    bool finished = false;            // it has the least period, within kSolverPrecision
    // At most the period of every assignment that fits and differs in free items only. Where some
    // items are not free and a transfer serves several devices, that is not certain.
    Nanoseconds lower_bound = 0;
    std::int64_t nodes = 0;
  };
  Result solve(const Limits& limits) const;

 private:
  void find_step();
  void allow_all();
  void break_symmetry();
  void add_assignment();
  void add_shared_nets();
  void add_shared_net(std::uint32_t net, DeviceId device);
  void add_sent_nets();
  void add_sent_net(std::uint32_t net);
  int add_sent_over(std::uint32_t net, DeviceId from, DeviceId to);
  void add_implied(std::uint32_t net, const std::vector<int>& sent);
  void add_links_of(std::uint32_t net, const std::vector<int>& sent);
  void add_loads();
  void add_memory();
  int column(std::uint32_t item, DeviceId device) const {
    return columns_[static_cast<std::size_t>(item) * devices_.count + device];
  }
  // The item's place on the device as terms of a row: nothing where it may not be there.
  void add_place(IntegerProgram::Row& row, std::uint32_t item, DeviceId device,
                 double factor) const;
  bool touched(std::uint32_t net) const;
  int new_column(double value);
  double scaled(Nanoseconds time) const { return static_cast<double>(time) / unit_; }
  std::vector<DeviceId> read(const std::vector<double>& values) const;

  const StreamLevel& level_;
  const StreamDevices& devices_;
  std::vector<DeviceId> start_;
  std::vector<bool> free_;
  bool all_free_;
  Nanoseconds start_period_ = 0;
  bool start_fits_ = false;
  double unit_ = 1;       // nanoseconds
  Nanoseconds step_ = 1;  // every load is a multiple of it
  IntegerProgram program_;
  int period_ = 0;                         // column
  std::vector<int> columns_;               // [item][device], or kNone
  std::vector<IntegerProgram::Row> load_;  // by resource, without what no free item touches
  std::vector<double> values_;             // of the start, by column
};

}  // namespace emplace
