#include "cluster/control_group.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

namespace emplace {
namespace {

namespace fs = std::filesystem;

// Nothing when the file is not there, or says "max" or -1: no limit.
std::optional<double> first_number(const fs::path& path) {
  std::ifstream file(path);
  double number = -1;
  return file >> number && number >= 0 ? std::optional(number) : std::nullopt;
}

template <class T>
void tighten(std::optional<T>& limit, std::optional<T> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

void tighten_memory(std::optional<Bytes>& limit, const fs::path& path) {
  const auto bytes = first_number(path);
  constexpr double kNoLimit = 4e18;  // version 1 has a huge number where there is none
  if (bytes && *bytes > 0 && *bytes < kNoLimit) {
    tighten(limit, std::optional(static_cast<Bytes>(*bytes)));
  }
}

// "200000 100000": so many microseconds in each period of so many.
std::optional<double> quota_of_pair(const fs::path& path) {
  std::ifstream file(path);
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> quota_of_two_files(const fs::path& folder) {
  const auto quota = first_number(folder / "cpu.cfs_quota_us");
  const auto period = first_number(folder / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// The group and all that it is in. A container may see the host's path and its own group mounted
// as the root, so folders that are not there are passed over.
std::vector<fs::path> folders(const fs::path& mounted, const std::string& group) {
  std::vector<fs::path> found{mounted};
  fs::path folder = mounted;
  for (const fs::path& part : fs::path(group).relative_path()) {
    if (part == "..") break;
    folder /= part;
    found.push_back(folder);
  }
  return found;
}

bool has_word(std::string_view list, std::string_view word) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (list.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

ControlGroup read_control_group(const fs::path& mounted, const std::string& membership) {
  ControlGroup limits;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      for (const fs::path& folder : folders(mounted, group)) {
        tighten(limits.cores, quota_of_pair(folder / "cpu.max"));
        tighten_memory(limits.memory, folder / "memory.max");
      }
    }
    if (has_word(controllers, "cpu")) {
      for (const fs::path& folder : folders(mounted / "cpu", group)) {
        tighten(limits.cores, quota_of_two_files(folder));
      }
    }
    if (has_word(controllers, "memory")) {
      for (const fs::path& folder : folders(mounted / "memory", group)) {
        tighten_memory(limits.memory, folder / "memory.limit_in_bytes");
      }
    }
  }
  return limits;
}

ControlGroup read_control_group() {
  std::ifstream file("/proc/self/cgroup");
  const std::string membership{std::istreambuf_iterator<char>(file), {}};
  return read_control_group("/sys/fs/cgroup", membership);
}

}  // namespace emplace
