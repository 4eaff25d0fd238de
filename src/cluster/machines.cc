#include "cluster/machines.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

#include "cluster/device_pattern.h"

namespace emplace {
namespace {

bool is_kept(const std::string& channel) {
  return channel == "pair" || channel == "out" || channel == "in" || channel == kUnlimitedChannel;
}

// "gpu0,gpu1" of machine m: "m.gpu0,m.gpu1".
std::string inside(const std::string& machine, const std::string& pattern) {
  std::string result = machine + ".";
  for (const char c : pattern) {
    if (c == ' ') continue;
    result += c;
    if (c == ',') result += machine + ".";
  }
  return result;
}

// Those that the end of a network rule names.
std::vector<std::string> named(const std::string& pattern,
                               const std::vector<std::string>& machines) {
  std::vector<std::string> found;
  for (const std::string& machine : machines) {
    if (names_device(pattern, {.name = machine, .kind = machine})) found.push_back(machine);
  }
  if (found.empty()) {
    fail_input("network: '{}' is no machine; expected {}, a pattern of them, or \"*\"", pattern,
               fmt::join(machines, ", "));
  }
  return found;
}

// All devices of the machines but one; empty when there is no other.
std::string devices_of_others(const std::vector<std::string>& machines, const std::string& one) {
  std::string result;
  for (const std::string& machine : machines) {
    if (machine == one) continue;
    result += fmt::format("{}{}.*", result.empty() ? "" : ",", machine);
  }
  return result;
}

}  // namespace

void add_machine(const Machine& machine, ClusterSpec& spec) {
  for (Device device : machine.devices) {
    device.name = machine.name + "." + device.name;
    spec.devices.push_back(std::move(device));
  }
  for (LinkRule rule : machine.links) {
    rule.from = inside(machine.name, rule.from);
    rule.to = inside(machine.name, rule.to);
    if (!is_kept(rule.channel)) rule.channel = machine.name + "." + rule.channel;
    spec.links.push_back(std::move(rule));
  }
}

void add_network(const LinkRule& rule, const std::vector<std::string>& machines,
                 ClusterSpec& spec) {
  const std::vector<std::string> senders = named(rule.from, machines);
  const std::vector<std::string> receivers = named(rule.to, machines);
  const auto add = [&](std::string from, std::string to, std::string channel) {
    if (from.empty() || to.empty()) return;
    LinkRule own = rule;
    own.from = std::move(from);
    own.to = std::move(to);
    own.channel = std::move(channel);
    spec.links.push_back(std::move(own));
  };
  if (rule.channel == "in") {
    for (const std::string& to : receivers) {
      add(devices_of_others(senders, to), to + ".*", "*->" + to);
    }
    return;
  }
  for (const std::string& from : senders) {
    if (rule.channel != "pair") {
      add(from + ".*", devices_of_others(receivers, from),
          rule.channel == "out" ? from + "->*" : rule.channel);
      continue;
    }
    for (const std::string& to : receivers) {
      if (from != to) add(from + ".*", to + ".*", from + "->" + to);
    }
  }
}

}  // namespace emplace
