// Whole numbers: x(item, device). All else is continuous, at its least value given x, and so exact
// for whole x: whether a device pays for a net, or whether the net is sent over a pair of devices;
// the share of the longest of several transfers that are one; the largest temporary of a device.
// (Multicasts of unequal lengths are charged too little.) The period is at least every load, memory
// at most every capacity. Rows that only fractions could violate (`add_implied`) make the
// relaxation tighter.
//
// Devices that differ in name only are told apart by what they hold: item i of the list, longest
// first, may only be on the first i + 1 of them. Every assignment can be renamed so, unless
// channels would then be others' (`channels_follow_devices`). With some items fixed, only nets of
// free items are in the program and the rest of the start's loads are constants. Bounds are rounded
// by the solver and made certain by `certain_bound`: loads are multiples of a common step. O(nets *
// devices * pins) rows, with squared devices where links differ. After Tarnawski et al., NeurIPS
// 2020.
#include "stream/assignment_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"

#include "stream/state.h"

namespace emplace {
namespace {

constexpr int kNone = -1;
constexpr int kWanted = -2;
// Periods are about so large in the program: well above the solver's tolerances.
constexpr double kScale = 1000;

// Whether devices that differ in name only can change places with all that their channels carry.
bool channels_follow_devices(const StreamDevices& devices) {
  if (devices.symmetric) return true;
  if (devices.multicast) return false;
  if (!devices.channels) return true;
  // One channel for each ordered pair, or for each sender, or for each receiver.
  std::map<ChannelId, std::set<DeviceId>> senders;
  std::map<ChannelId, std::set<DeviceId>> receivers;
  for (DeviceId from = 0; from < devices.count; ++from) {
    for (DeviceId to = 0; to < devices.count; ++to) {
      const ChannelId channel = devices.channel[devices.pair(from, to)];
      if (channel == kNoChannel) continue;
      senders[channel].insert(from);
      receivers[channel].insert(to);
    }
  }
  const auto all_single = [](const auto& sets) {
    return std::all_of(sets.begin(), sets.end(),
                       [](const auto& entry) { return entry.second.size() == 1; });
  };
  const auto all_wide = [&](const auto& sets) {
    return sets.size() == devices.count &&
           std::all_of(sets.begin(), sets.end(),
                       [&](const auto& entry) { return entry.second.size() + 1 == devices.count; });
  };
  const bool by_sender = all_single(senders);
  const bool by_receiver = all_single(receivers);
  return (by_sender && by_receiver) || (by_sender && all_wide(receivers)) ||
         (by_receiver && all_wide(senders));
}

}  // namespace

AssignmentProgram::AssignmentProgram(const StreamLevel& level, std::vector<DeviceId> start,
                                     const std::vector<bool>& free)
    : level_(level),
      devices_(level.devices()),
      start_(std::move(start)),
      free_(free),
      all_free_(free.empty()) {
  if (all_free_) free_.assign(level.num_items(), true);
  EMPLACE_CHECK(start_.size() == level.num_items() && free_.size() == level.num_items());
  find_step();
  allow_all();
  if (all_free_ && channels_follow_devices(devices_)) break_symmetry();
  const StreamState state(level, start_);
  start_period_ = state.period();
  start_fits_ = state.overflow() == 0 && state.missing_links() == 0;
  unit_ = std::max(1.0, static_cast<double>(start_period_) / kScale);
  period_ = program_.add_continuous(
      0, start_fits_ ? scaled(start_period_) : IntegerProgram::kInfinity, 1);
  values_.push_back(scaled(start_period_));
  load_.resize(devices_.num_resources);
  add_assignment();
  if (devices_.symmetric) {
    add_shared_nets();
  } else {
    add_sent_nets();
  }
  add_loads();
  add_memory();
}

int AssignmentProgram::new_column(double value) {
  values_.push_back(value);
  return program_.add_continuous(0, 1);
}

void AssignmentProgram::add_place(IntegerProgram::Row& row, std::uint32_t item, DeviceId device,
                                  double factor) const {
  if (column(item, device) != kNone) row.push_back({column(item, device), factor});
}

bool AssignmentProgram::touched(std::uint32_t net) const {
  const auto pins = level_.pins(net);
  return std::any_of(pins.begin(), pins.end(), [&](std::uint32_t pin) { return free_[pin]; });
}

void AssignmentProgram::find_step() {
  step_ = 0;
  for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
    for (const DeviceId device : level_.allowed(item)) {
      step_ = std::gcd(step_, level_.time(item, device));
    }
  }
  for (std::uint32_t net = 0; net < level_.num_nets(); ++net) {
    for (std::uint32_t link = 0; link < devices_.num_link_classes; ++link) {
      step_ = std::gcd(step_, level_.length(net, link));
    }
  }
  step_ = std::max<Nanoseconds>(step_, 1);
}

// Marks with kWanted the columns to come: of free items, and of the others that share nets with
// them.
void AssignmentProgram::allow_all() {
  columns_.assign(static_cast<std::size_t>(level_.num_items()) * devices_.count, kNone);
  const auto want = [&](std::uint32_t item, DeviceId device) {
    columns_[static_cast<std::size_t>(item) * devices_.count + device] = kWanted;
  };
  for (std::uint32_t net = 0; net < level_.num_nets(); ++net) {
    if (!touched(net)) continue;
    for (const std::uint32_t pin : level_.pins(net)) {
      if (!free_[pin]) want(pin, start_[pin]);
    }
  }
  for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
    if (!free_[item]) continue;
    for (const DeviceId device : level_.allowed(item)) want(item, device);
  }
}

// Of devices that differ in name only, the first takes the longest item of them all, the second the
// longest of what is not on the first, and so on: the start is put into that form.
void AssignmentProgram::break_symmetry() {
  std::vector<std::uint32_t> order(level_.num_items());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return level_.least_time(a) > level_.least_time(b);
  });
  std::map<DeviceId, std::vector<DeviceId>> twins;
  for (DeviceId device = 0; device < devices_.count; ++device) {
    twins[devices_.twin[device]].push_back(device);
  }
  std::vector<DeviceId> new_name(devices_.count, kNoDevice);
  std::map<DeviceId, std::size_t> named;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::uint32_t item = order[place];
    for (const auto& [first, devices] : twins) {
      for (std::size_t i = place + 1; i < devices.size(); ++i) {
        columns_[static_cast<std::size_t>(item) * devices_.count + devices[i]] = kNone;
      }
    }
    DeviceId& name = new_name[start_[item]];
    const DeviceId first = devices_.twin[start_[item]];
    if (name == kNoDevice) name = twins[first][named[first]++];
    start_[item] = name;
  }
}

void AssignmentProgram::add_assignment() {
  for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
    IntegerProgram::Row row;
    for (const DeviceId device : level_.allowed(item)) {
      int& column = columns_[static_cast<std::size_t>(item) * devices_.count + device];
      if (column == kNone) continue;
      column = program_.add_binary();
      values_.push_back(start_[item] == device ? 1 : 0);
      if (!free_[item]) program_.fix(column, 1);
      row.push_back({column, 1});
      if (free_[item]) load_[device].push_back({column, scaled(level_.time(item, device))});
    }
    if (free_[item]) program_.equals(row, 1);
  }
}

// Every device that has some members of a net, but not all, pays its length.
void AssignmentProgram::add_shared_nets() {
  for (std::uint32_t net = 0; net < level_.num_nets(); ++net) {
    if (!touched(net)) continue;
    for (DeviceId device = 0; device < devices_.count; ++device) {
      if (devices_.pays[device] != 0) add_shared_net(net, device);
    }
  }
}

void AssignmentProgram::add_shared_net(std::uint32_t net, DeviceId device) {
  const auto pins = level_.pins(net);
  const auto count = std::count_if(pins.begin(), pins.end(),
                                   [&](std::uint32_t pin) { return start_[pin] == device; });
  const bool cut = count > 0 && static_cast<std::size_t>(count) < pins.size();
  const int paid = new_column(cut ? 1 : 0);
  for (const std::uint32_t pin : pins.subspan(1)) {
    for (const double sign : {1.0, -1.0}) {
      IntegerProgram::Row row{{paid, 1}};
      add_place(row, pins[0], device, -sign);
      add_place(row, pin, device, sign);
      if (row.size() > 1) program_.at_least(row, 0);
    }
  }
  load_[device].push_back({paid, scaled(level_.length(net, 0))});
}

void AssignmentProgram::add_sent_nets() {
  for (std::uint32_t net = 0; net < level_.num_nets(); ++net) {
    if (touched(net)) add_sent_net(net);
  }
}

// Where links differ or channels have loads: which ordered pairs a net is sent over.
void AssignmentProgram::add_sent_net(std::uint32_t net) {
  const auto pins = level_.pins(net);
  std::vector<int> sent(devices_.link_class.size(), kNone);
  for (DeviceId from = 0; from < devices_.count; ++from) {
    if (column(pins[0], from) == kNone) continue;
    for (DeviceId to = 0; to < devices_.count; ++to) {
      const auto reads = [&](std::uint32_t pin) { return column(pin, to) != kNone; };
      if (from == to || std::none_of(pins.begin() + 1, pins.end(), reads)) continue;
      sent[devices_.pair(from, to)] = add_sent_over(net, from, to);
    }
  }
  add_implied(net, sent);
  add_links_of(net, sent);
}

// kNone where there is no link: then it must not be needed.
int AssignmentProgram::add_sent_over(std::uint32_t net, DeviceId from, DeviceId to) {
  const auto pins = level_.pins(net);
  int sent = kNone;
  if (devices_.link_class[devices_.pair(from, to)] != devices_.kNoLinkClass) {
    const auto there = [&](std::uint32_t pin) { return start_[pin] == to; };
    const bool used = start_[pins[0]] == from && std::any_of(pins.begin() + 1, pins.end(), there);
    sent = new_column(used ? 1 : 0);
  }
  for (const std::uint32_t pin : pins.subspan(1)) {
    if (column(pin, to) == kNone) continue;
    IntegerProgram::Row row{{column(pins[0], from), -1}, {column(pin, to), -1}};
    if (sent != kNone) row.push_back({sent, 1});
    program_.at_least(row, -1);
  }
  return sent;
}

// What is implied for whole numbers, but not without: a reader that is not where the net is made
// gets it from somewhere, and a sender whose reader is elsewhere sends it somewhere.
void AssignmentProgram::add_implied(std::uint32_t net, const std::vector<int>& sent) {
  const auto pins = level_.pins(net);
  for (DeviceId device = 0; device < devices_.count; ++device) {
    IntegerProgram::Row arriving;
    IntegerProgram::Row leaving;
    for (DeviceId other = 0; other < devices_.count; ++other) {
      const int in = sent[devices_.pair(other, device)];
      const int out = sent[devices_.pair(device, other)];
      if (in != kNone) arriving.push_back({in, 1});
      if (out != kNone) leaving.push_back({out, 1});
    }
    for (const std::uint32_t pin : pins.subspan(1)) {
      for (const bool in : {true, false}) {
        IntegerProgram::Row row = in ? arriving : leaving;
        add_place(row, pins[0], device, in ? 1 : -1);
        add_place(row, pin, device, in ? -1 : 1);
        if (!row.empty()) program_.at_least(row, 0);
      }
    }
  }
}

// What the transfers of a net cost. Several that are one, of different lengths, cost receivers no
// more than their own here, which makes the bound lower, never wrong.
void AssignmentProgram::add_links_of(std::uint32_t net, const std::vector<int>& sent) {
  for (DeviceId from = 0; from < devices_.count; ++from) {
    std::map<ChannelId, std::vector<std::pair<int, Nanoseconds>>> multicasts;
    std::vector<std::pair<int, Nanoseconds>> outgoing;
    for (DeviceId to = 0; to < devices_.count; ++to) {
      const std::size_t pair = devices_.pair(from, to);
      if (sent[pair] == kNone) continue;
      const Nanoseconds length = level_.length(net, devices_.link_class[pair]);
      if (length == 0) continue;
      if (devices_.channels && devices_.is_multicast[pair] != 0) {
        multicasts[devices_.channel[pair]].emplace_back(sent[pair], length);
      } else if (devices_.loads_channel[pair] != 0) {
        load_[devices_.count + devices_.channel[pair]].push_back({sent[pair], scaled(length)});
      } else if (!devices_.channels) {
        if (devices_.pays[to] != 0) load_[to].push_back({sent[pair], scaled(length)});
        if (devices_.pays[from] != 0) outgoing.emplace_back(sent[pair], length);
      }
    }
    const auto add_longest = [&](const std::vector<std::pair<int, Nanoseconds>>& transfers,
                                 std::uint32_t resource) {
      Nanoseconds longest = 0;
      Nanoseconds used = 0;
      for (const auto& [variable, length] : transfers) {
        longest = std::max(longest, length);
        if (values_[static_cast<std::size_t>(variable)] > 0) used = std::max(used, length);
      }
      if (longest == 0) return;
      const double whole = static_cast<double>(longest);
      const int share = new_column(static_cast<double>(used) / whole);
      for (const auto& [variable, length] : transfers) {
        program_.at_least({{share, 1}, {variable, -static_cast<double>(length) / whole}}, 0);
      }
      load_[resource].push_back({share, scaled(longest)});
    };
    for (const auto& [channel, transfers] : multicasts) {
      add_longest(transfers, devices_.count + channel);
    }
    add_longest(outgoing, from);
  }
}

// Where not all is free, what the program does not know of is the rest of the start's loads.
void AssignmentProgram::add_loads() {
  const StreamState state(level_, start_);
  for (std::uint32_t resource = 0; resource < devices_.num_resources; ++resource) {
    double known = 0;
    for (const auto& [column, factor] : load_[resource]) {
      known += factor * values_[static_cast<std::size_t>(column)];
    }
    const double rest = all_free_ ? 0 : std::max(0.0, scaled(state.load(resource)) - known);
    IntegerProgram::Row row{{period_, 1}};
    for (const auto& [column, factor] : load_[resource]) row.push_back({column, -factor});
    program_.at_least(row, rest);
  }
}

void AssignmentProgram::add_memory() {
  const StreamState state(level_, start_);
  if (state.memory_is_ample()) return;
  for (DeviceId device = 0; device < devices_.count; ++device) {
    const Bytes capacity = devices_.capacity[device];
    if (capacity == kUnlimited) continue;
    const double whole = std::max(1.0, static_cast<double>(capacity));
    IntegerProgram::Row row;
    Bytes kept = 0;
    Bytes kept_temp = 0;
    Bytes start_temp = 0;
    Bytes most_temp = 0;
    for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
      const bool here = start_[item] == device;
      if (here) start_temp = std::max(start_temp, level_.temp(item));
      if (!free_[item]) {
        if (!here) continue;
        kept += level_.memory(item);
        kept_temp = std::max(kept_temp, level_.temp(item));
      } else if (column(item, device) != kNone) {
        row.push_back({column(item, device), static_cast<double>(level_.memory(item)) / whole});
        most_temp = std::max(most_temp, level_.temp(item));
      }
    }
    if (most_temp > 0 || kept_temp > 0) {
      values_.push_back(static_cast<double>(start_temp) / whole);
      const int temp = program_.add_continuous(static_cast<double>(kept_temp) / whole,
                                               IntegerProgram::kInfinity);
      for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
        if (!free_[item] || column(item, device) == kNone || level_.temp(item) == 0) continue;
        program_.at_least(
            {{temp, 1}, {column(item, device), -static_cast<double>(level_.temp(item)) / whole}},
            0);
      }
      row.push_back({temp, 1});
    }
    const double room = static_cast<double>(capacity) / whole;
    program_.at_most(row, room - static_cast<double>(kept) / whole);
  }
}

std::vector<DeviceId> AssignmentProgram::read(const std::vector<double>& values) const {
  std::vector<DeviceId> result = start_;
  for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
    double most = 0;
    for (const DeviceId device : level_.allowed(item)) {
      if (column(item, device) == kNone) continue;
      const double value = values[static_cast<std::size_t>(column(item, device))];
      if (value <= most) continue;
      most = value;
      result[item] = device;
    }
  }
  return result;
}

AssignmentProgram::Result AssignmentProgram::solve(const Limits& limits) const {
  Result result;
  result.device_of = start_;
  IntegerProgram::Limits own;
  own.nodes = limits.nodes;
  own.seconds = limits.seconds;
  own.stop = limits.stop;
  own.stop_inside = limits.stop_inside;
  if (limits.on_solution) {
    own.on_solution = [&](const std::vector<double>& values) { limits.on_solution(read(values)); };
  }
  const auto start = start_fits_ ? values_ : std::vector<double>{};
  const IntegerProgram::Result solved = program_.solve(own, start);
  result.nodes = solved.nodes;
  result.finished = solved.finished;
  if (!solved.best.empty()) result.device_of = read(solved.best);
  result.lower_bound = certain_bound(solved.bound * unit_, step_);
  if (start_fits_) result.lower_bound = std::min(result.lower_bound, start_period_);
  return result;
}

}  // namespace emplace
