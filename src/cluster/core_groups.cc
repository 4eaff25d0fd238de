#include "cluster/core_groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"

#include "cluster/cluster.h"

namespace emplace {
namespace {

[[noreturn]] void fail_groups(std::string_view text) {
  fail_option("groups of cores '{}': expected how many of how many cores, such as 4x3 or 2x4+1x8",
              text);
}

int take_cores(std::string_view whole, std::string_view& text) {
  constexpr int kMost = 4096;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 1 || number > kMost) fail_groups(whole);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

struct FreeThread {
  int number;
  const LocalCore* core;
};

// The hardware threads that groups are made of, those of one core beside each other.
std::vector<FreeThread> threads_for(const LocalMachine& machine, int wanted) {
  const bool whole_cores = wanted <= static_cast<int>(machine.cores.size());
  std::vector<FreeThread> threads;
  for (const LocalCore& core : machine.cores) {
    for (const int number : core.threads) {
      threads.push_back({number, &core});
      if (whole_cores) break;
    }
  }
  return threads;
}

// Which part of the machine the group goes to, of those that `part` tells apart: the first of those
// with most free threads, if they are enough.
template <class Part>
std::optional<int> roomiest(const std::vector<FreeThread>& free, std::size_t size, Part part) {
  std::map<int, std::size_t> room;
  for (const FreeThread& thread : free) ++room[part(*thread.core)];
  const auto most = std::max_element(
      room.begin(), room.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == room.end() || most->second < size) return std::nullopt;
  return most->first;
}

// Takes the first `size` of the threads on which `is_there` holds.
template <class IsThere>
std::vector<int> take(std::vector<FreeThread>& free, std::size_t size, IsThere is_there) {
  std::vector<int> group;
  std::erase_if(free, [&](const FreeThread& thread) {
    if (group.size() == size || !is_there(*thread.core)) return false;
    group.push_back(thread.number);
    return true;
  });
  std::sort(group.begin(), group.end());
  return group;
}

std::vector<int> take_close(std::vector<FreeThread>& free, std::size_t size) {
  const auto cache = [](const LocalCore& core) { return core.last_cache; };
  const auto node = [](const LocalCore& core) { return core.node; };
  if (const auto found = roomiest(free, size, cache)) {
    return take(free, size, [&](const LocalCore& core) { return cache(core) == *found; });
  }
  if (const auto found = roomiest(free, size, node)) {
    return take(free, size, [&](const LocalCore& core) { return node(core) == *found; });
  }
  return take(free, size, [](const LocalCore&) { return true; });
}

void check_room(const LocalMachine& machine, const std::vector<int>& sizes, bool share) {
  const int have = machine.num_threads();
  const int largest = *std::max_element(sizes.begin(), sizes.end());
  if (largest > have) {
    fail_option("a group of {} cores: this machine has {} that can be used", largest, have);
  }
  const int wanted = std::accumulate(sizes.begin(), sizes.end(), 0);
  if (wanted > have && !share) {
    fail_option(
        "{} groups of cores need {} cores in all, and this machine has {} that can be used; "
        "expected fewer, or leave to share them",
        sizes.size(), wanted, have);
  }
}

}  // namespace

std::vector<int> parse_core_groups(std::string_view text) {
  std::vector<int> sizes;
  for (std::string_view rest = text;;) {
    int count = 1;
    int size = take_cores(text, rest);
    if (rest.starts_with('x') || rest.starts_with('X')) {
      rest.remove_prefix(1);
      count = size;
      size = take_cores(text, rest);
    }
    sizes.insert(sizes.end(), static_cast<std::size_t>(count), size);
    if (sizes.size() > Cluster::kMaxDevices) {
      fail_option("groups of cores '{}': expected at most {} groups", text, Cluster::kMaxDevices);
    }
    if (rest.empty()) return sizes;
    if (!rest.starts_with('+')) fail_groups(text);
    rest.remove_prefix(1);
  }
}

std::vector<std::vector<int>> divide_cores(const LocalMachine& machine,
                                           const std::vector<int>& sizes, bool share) {
  if (sizes.empty()) return {};
  check_room(machine, sizes, share);
  const int wanted = std::accumulate(sizes.begin(), sizes.end(), 0);
  const std::vector<FreeThread> all = threads_for(machine, wanted);
  // Large ones first: they are the hardest to keep together.
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<std::vector<int>> groups(sizes.size());
  std::vector<FreeThread> free = all;
  for (const std::size_t i : order) {
    const auto size = static_cast<std::size_t>(sizes[i]);
    if (free.size() < size) free = all;
    groups[i] = take_close(free, size);
  }
  return groups;
}

}  // namespace emplace
