// Whole numbers: on which device each unit is, and for two tasks that no path orders, which comes
// first if they share a device. Starts are continuous. Rows:
//
//   start(j) >= start(i) + duration(i) + length(i, j, devices)            for each edge
//   start(j) >= start(i) + duration(i) + gap - M (1 - i first)            for each such pair
//   step >= start(i) + duration(i) + tail(i);  step >= a device's durations and gaps
//
// M is the horizon less the head of the later and the tail of the earlier task, plus the longest
// gap: enough never to forbid anything. A transfer costs its shortest length if the units are apart
// (one continuous variable for two units) and more rows where links differ. The model leaves out
// waiting for channels and part of the memory, so its optimum is at most the step of the best
// placement, and the solver's bound, made certain by `certain_bound`, is one for the simulator. Its
// schedule is only a proposal.
//
// Devices that differ in nothing are told apart by which unit they hold first. O(tasks^2 * devices
// + edges * devices^2) rows: for tens of tasks.
#include "placers/common/schedule_program.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace emplace {
namespace {

constexpr int kNone = -1;
constexpr double kScale = 1000;

}  // namespace

ScheduleProgram::ScheduleProgram(const ScheduleTasks& tasks, std::vector<DeviceId> start,
                                 Nanoseconds upper)
    : tasks_(tasks), start_(std::move(start)), upper_(upper) {
  EMPLACE_CHECK(start_.size() == tasks.num_units());
  break_symmetry();
  schedule_start();
  const Nanoseconds horizon = std::max(
      upper_, start_end_.empty() ? 0 : *std::max_element(start_end_.begin(), start_end_.end()));
  unit_ = std::max(1.0, static_cast<double>(horizon) / kScale);
  find_paths();
  step_ = new_column(program_.add_continuous(0, scaled(horizon), 1), 0);
  add_places();
  add_times();
  for (const ScheduleTasks::Edge& edge : tasks.edges) add_edge(edge);
  add_orders();
  double longest = 0;
  for (const Nanoseconds end : start_end_) longest = std::max(longest, scaled(end));
  values_[static_cast<std::size_t>(step_)] = longest;
}

bool ScheduleProgram::are_twins(DeviceId a, DeviceId b) const {
  if (tasks_.gap[a] != tasks_.gap[b] || tasks_.capacity[a] != tasks_.capacity[b]) return false;
  for (const ScheduleTasks::Task& task : tasks_.tasks) {
    if (task.duration[a] != task.duration[b]) return false;
  }
  for (const auto& allowed : tasks_.allowed) {
    if (std::binary_search(allowed.begin(), allowed.end(), a) !=
        std::binary_search(allowed.begin(), allowed.end(), b)) {
      return false;
    }
  }
  return std::all_of(tasks_.edges.begin(), tasks_.edges.end(), [&](const auto& edge) {
    return edge.length.empty() || same_links(edge.length, a, b);
  });
}

// Whether the lengths stay as they are when the two devices change places.
bool ScheduleProgram::same_links(const std::vector<Nanoseconds>& length, DeviceId a,
                                 DeviceId b) const {
  const auto other = [&](DeviceId device) { return device == a ? b : device == b ? a : device; };
  for (DeviceId device = 0; device < tasks_.num_devices; ++device) {
    if (length[pair(a, device)] != length[pair(b, other(device))] ||
        length[pair(device, a)] != length[pair(other(device), b)]) {
      return false;
    }
  }
  return true;
}

// Of devices that differ in nothing here, the first takes the first unit of them all, the second
// the first of what is not on the first, and so on. The start is put into that form.
void ScheduleProgram::break_symmetry() {
  std::vector<std::vector<DeviceId>> twins;
  std::vector<std::size_t> set_of(tasks_.num_devices);
  for (DeviceId device = 0; device < tasks_.num_devices; ++device) {
    const auto known = std::find_if(twins.begin(), twins.end(), [&](const auto& set) {
      return are_twins(set.front(), device);
    });
    set_of[device] = static_cast<std::size_t>(known - twins.begin());
    if (known == twins.end()) {
      twins.push_back({device});
    } else {
      known->push_back(device);
    }
  }
  possible_ = tasks_.allowed;
  std::vector<DeviceId> new_name(tasks_.num_devices, kNoDevice);
  std::vector<std::size_t> named(twins.size(), 0);
  for (std::uint32_t unit = 0; unit < tasks_.num_units(); ++unit) {
    std::erase_if(possible_[unit], [&](DeviceId device) {
      const auto& set = twins[set_of[device]];
      return std::find(set.begin(), set.end(), device) - set.begin() > unit;
    });
    DeviceId& name = new_name[start_[unit]];
    const std::size_t set = set_of[start_[unit]];
    if (name == kNoDevice) name = twins[set][named[set]++];
    start_[unit] = name;
  }
}

// The start with tasks in their order, each as soon as its device and its data allow.
void ScheduleProgram::schedule_start() {
  const std::size_t count = tasks_.tasks.size();
  start_time_.assign(count, 0);
  start_end_.assign(count, 0);
  std::vector<std::vector<const ScheduleTasks::Edge*>> incoming(count);
  for (const ScheduleTasks::Edge& edge : tasks_.edges) incoming[edge.to].push_back(&edge);
  std::vector<Nanoseconds> free(tasks_.num_devices, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const ScheduleTasks::Task& task = tasks_.tasks[i];
    const DeviceId device = start_[task.unit];
    for (const ScheduleTasks::Edge* edge : incoming[i]) {
      const DeviceId from = start_[tasks_.tasks[edge->from].unit];
      Nanoseconds ready = start_end_[edge->from];
      if (from != device && !edge->length.empty()) {
        ready += std::max<Nanoseconds>(0, edge->length[pair(from, device)]);
      }
      start_time_[i] = std::max(start_time_[i], ready);
    }
    const Nanoseconds duration = task.duration[device];
    if (duration > 0) {
      start_time_[i] = std::max(start_time_[i], free[device]);
      free[device] = start_time_[i] + duration + tasks_.gap[device];
    }
    start_end_[i] = start_time_[i] + duration;
  }
}

void ScheduleProgram::find_paths() {
  const std::size_t count = tasks_.tasks.size();
  std::vector<Nanoseconds> least(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& allowed = possible_[tasks_.tasks[i].unit];
    least[i] = std::numeric_limits<Nanoseconds>::max();
    for (const DeviceId device : allowed) {
      least[i] = std::min(least[i], tasks_.tasks[i].duration[device]);
    }
  }
  std::vector<std::vector<std::uint32_t>> next(count);
  for (const ScheduleTasks::Edge& edge : tasks_.edges) next[edge.from].push_back(edge.to);
  head_.assign(count, 0);
  tail_.assign(count, 0);
  before_.assign(count, std::vector<bool>(count, false));
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::uint32_t to : next[i]) head_[to] = std::max(head_[to], head_[i] + least[i]);
  }
  for (std::size_t i = count; i-- > 0;) {
    for (const std::uint32_t to : next[i]) {
      tail_[i] = std::max(tail_[i], tail_[to] + least[to]);
      before_[i][to] = true;
      for (std::size_t j = 0; j < count; ++j) {
        if (before_[to][j]) before_[i][j] = true;
      }
    }
  }
}

void ScheduleProgram::add_places() {
  places_.assign(static_cast<std::size_t>(tasks_.num_units()) * tasks_.num_devices, kNone);
  std::vector<IntegerProgram::Row> memory(tasks_.num_devices);
  for (std::uint32_t unit = 0; unit < tasks_.num_units(); ++unit) {
    IntegerProgram::Row row;
    for (const DeviceId device : possible_[unit]) {
      const int column = new_column(program_.add_binary(), start_[unit] == device ? 1 : 0);
      places_[static_cast<std::size_t>(unit) * tasks_.num_devices + device] = column;
      row.push_back({column, 1});
      memory[device].push_back({column, static_cast<double>(tasks_.memory[unit])});
    }
    program_.equals(row, 1);
  }
  for (DeviceId device = 0; device < tasks_.num_devices; ++device) {
    const Bytes capacity = tasks_.capacity[device];
    double total = 0;
    for (const auto& term : memory[device]) total += term.factor;
    if (total <= static_cast<double>(capacity)) continue;
    const double whole = std::max(1.0, static_cast<double>(capacity));
    for (auto& term : memory[device]) term.factor /= whole;
    program_.at_most(memory[device], static_cast<double>(capacity) / whole);
  }
}

void ScheduleProgram::add_duration(IntegerProgram::Row& row, std::uint32_t task, bool with_gap,
                                   double sign) const {
  for (const DeviceId device : possible_[tasks_.tasks[task].unit]) {
    const Nanoseconds duration = tasks_.tasks[task].duration[device];
    if (duration == 0) continue;
    const Nanoseconds length = duration + (with_gap ? tasks_.gap[device] : 0);
    row.push_back({place(tasks_.tasks[task].unit, device), sign * scaled(length)});
  }
}

// Starts, the end of the step after every task, and every device's time.
void ScheduleProgram::add_times() {
  std::vector<IntegerProgram::Row> load(tasks_.num_devices);
  for (std::uint32_t task = 0; task < tasks_.tasks.size(); ++task) {
    const int time = program_.add_continuous(scaled(head_[task]), IntegerProgram::kInfinity);
    times_.push_back(new_column(time, scaled(start_time_[task])));
    IntegerProgram::Row row{{step_, 1}, {time, -1}};
    add_duration(row, task, false, -1);
    program_.at_least(row, scaled(tail_[task]));
    const std::uint32_t unit = tasks_.tasks[task].unit;
    for (const DeviceId device : possible_[unit]) {
      const Nanoseconds duration = tasks_.tasks[task].duration[device];
      if (duration == 0) continue;
      load[device].push_back({place(unit, device), -scaled(duration + tasks_.gap[device])});
    }
  }
  for (DeviceId device = 0; device < tasks_.num_devices; ++device) {
    if (load[device].empty()) continue;
    load[device].push_back({step_, 1});
    program_.at_least(load[device], -scaled(tasks_.gap[device]));
  }
}

// Whether two units are on different devices.
int ScheduleProgram::apart(std::uint32_t a, std::uint32_t b) {
  if (a > b) std::swap(a, b);
  if (apart_.empty()) {
    apart_.assign(static_cast<std::size_t>(tasks_.num_units()) * tasks_.num_units(), kNone);
  }
  int& known = apart_[static_cast<std::size_t>(a) * tasks_.num_units() + b];
  if (known != kNone) return known;
  known = new_column(program_.add_continuous(0, 1), start_[a] == start_[b] ? 0 : 1);
  for (DeviceId device = 0; device < tasks_.num_devices; ++device) {
    for (const auto& [one, other] : {std::pair{a, b}, std::pair{b, a}}) {
      if (place(one, device) == kNone) continue;
      IntegerProgram::Row row{{known, 1}, {place(one, device), -1}};
      if (place(other, device) != kNone) row.push_back({place(other, device), 1});
      program_.at_least(row, 0);
    }
  }
  return known;
}

void ScheduleProgram::add_edge(const ScheduleTasks::Edge& edge) {
  const std::uint32_t from = tasks_.tasks[edge.from].unit;
  const std::uint32_t to = tasks_.tasks[edge.to].unit;
  IntegerProgram::Row after{{times_[edge.to], 1}, {times_[edge.from], -1}};
  add_duration(after, edge.from, false, -1);
  const bool sends = from != to && !edge.length.empty();
  const Nanoseconds least = sends ? shortest(edge) : 0;
  if (sends) add_lengths(edge, least, after);
  if (least > 0) after.push_back({apart(from, to), -scaled(least)});
  program_.at_least(after, 0);
}

// Of its links; 0 where there are none.
Nanoseconds ScheduleProgram::shortest(const ScheduleTasks::Edge& edge) const {
  constexpr Nanoseconds kNoneYet = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds least = kNoneYet;
  for (const DeviceId a : possible_[tasks_.tasks[edge.from].unit]) {
    for (const DeviceId b : possible_[tasks_.tasks[edge.to].unit]) {
      const Nanoseconds length = edge.length[pair(a, b)];
      if (a != b && length != ScheduleTasks::kNoLink) least = std::min(least, length);
    }
  }
  return least == kNoneYet ? 0 : least;
}

// What pairs of devices add to the shortest length. `after`: the edge's row without any.
void ScheduleProgram::add_lengths(const ScheduleTasks::Edge& edge, Nanoseconds least,
                                  const IntegerProgram::Row& after) {
  const std::uint32_t from = tasks_.tasks[edge.from].unit;
  const std::uint32_t to = tasks_.tasks[edge.to].unit;
  for (const DeviceId a : possible_[from]) {
    for (const DeviceId b : possible_[to]) {
      if (a == b) continue;
      const Nanoseconds length = edge.length[pair(a, b)];
      if (length == ScheduleTasks::kNoLink) {
        program_.at_most({{place(from, a), 1}, {place(to, b), 1}}, 1);
      } else if (length > least) {
        IntegerProgram::Row row = after;
        row.push_back({place(from, a), -scaled(length)});
        row.push_back({place(to, b), -scaled(length)});
        program_.at_least(row, -scaled(length));
      }
    }
  }
}

void ScheduleProgram::add_orders() {
  for (std::uint32_t b = 0; b < tasks_.tasks.size(); ++b) {
    for (std::uint32_t a = 0; a < b; ++a) {
      if (!before_[a][b]) add_order(a, b);
    }
  }
}

// Of two tasks that take time on one device, one ends, and its gap with it, before the other
// starts.
void ScheduleProgram::add_order(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t unit_a = tasks_.tasks[a].unit;
  const std::uint32_t unit_b = tasks_.tasks[b].unit;
  std::vector<DeviceId> common;
  for (const DeviceId device : possible_[unit_a]) {
    if (place(unit_b, device) == kNone || tasks_.tasks[a].duration[device] == 0 ||
        tasks_.tasks[b].duration[device] == 0) {
      continue;
    }
    common.push_back(device);
  }
  if (common.empty()) return;
  const bool meet = start_[unit_a] == start_[unit_b] &&
                    std::find(common.begin(), common.end(), start_[unit_a]) != common.end();
  // As a comes first in the tasks' order, it does so in the start.
  const int a_first = new_column(program_.add_binary(), meet ? 1 : 0);
  const int b_first = new_column(program_.add_binary(), 0);
  for (const DeviceId device : common) {
    program_.at_least(
        {{a_first, 1}, {b_first, 1}, {place(unit_a, device), -1}, {place(unit_b, device), -1}}, -1);
  }
  double horizon = kScale;
  Nanoseconds longest_gap = 0;
  for (const Nanoseconds gap : tasks_.gap) longest_gap = std::max(longest_gap, gap);
  for (const bool first : {true, false}) {
    const std::uint32_t early = first ? a : b;
    const std::uint32_t late = first ? b : a;
    // The early one ends, and the late one starts, within these.
    const double span = horizon - scaled(tail_[early]) - scaled(head_[late]) + scaled(longest_gap);
    IntegerProgram::Row row{
        {times_[late], 1}, {times_[early], -1}, {first ? a_first : b_first, -span}};
    add_duration(row, early, true, -1);
    program_.at_least(row, -span);
  }
}

ScheduleProgram::Schedule ScheduleProgram::read(const std::vector<double>& values) const {
  Schedule result;
  result.device_of = start_;
  for (std::uint32_t unit = 0; unit < tasks_.num_units(); ++unit) {
    double most = 0;
    for (const DeviceId device : possible_[unit]) {
      const double value = values[static_cast<std::size_t>(place(unit, device))];
      if (value <= most) continue;
      most = value;
      result.device_of[unit] = device;
    }
  }
  for (const int time : times_) result.start.push_back(values[static_cast<std::size_t>(time)]);
  return result;
}

ScheduleProgram::Result ScheduleProgram::solve(const Limits& limits) const {
  IntegerProgram::Limits own;
  own.nodes = limits.nodes;
  own.seconds = limits.seconds;
  own.stop = limits.stop;
  own.stop_inside = limits.stop_inside;
  // Without an order of the tasks the linear program knows next to nothing.
  own.thorough = false;
  if (limits.on_solution) {
    own.on_solution = [&](const std::vector<double>& values) { limits.on_solution(read(values)); };
  }
  const IntegerProgram::Result solved = program_.solve(own, values_);
  Result result{.finished = solved.finished, .lower_bound = 0, .nodes = solved.nodes};
  // Where nothing is within the horizon, nothing is better than `upper` either.
  const bool nothing = solved.finished && solved.best.empty();
  result.lower_bound =
      nothing ? upper_ : std::min(upper_, certain_bound(solved.bound * unit_, tasks_.step));
  return result;
}

}  // namespace emplace
