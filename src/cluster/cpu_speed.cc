#include "cluster/cpu_speed.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

namespace emplace {
namespace {

std::string_view stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::optional<double> real_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

bool has_flag(std::string_view flags, std::string_view flag) {
  for (std::size_t at = flags.find(flag); at != std::string_view::npos;
       at = flags.find(flag, at + 1)) {
    const std::size_t end = at + flag.size();
    if ((at == 0 || flags[at - 1] == ' ') && (end == flags.size() || flags[end] == ' ')) {
      return true;
    }
  }
  return false;
}

// Two units, each of which does a vector in a cycle; a fused multiplication and addition are two
// operations. AMD's fourth generation and older take two cycles for a vector of 512 bits.
double operations_per_cycle(std::string_view flags, bool slow_avx512) {
  if (has_flag(flags, "avx512f") && !slow_avx512) return 64;
  if (has_flag(flags, "fma")) return 32;
  if (has_flag(flags, "avx") || has_flag(flags, "asimd")) return 16;
  return CpuSpeed{}.float32_per_cycle;
}

struct CpuInfo {
  std::string_view name, vendor, flags;
  double family = 0;
  double megahertz = 0;  // of the fastest core now
  double bogomips = 0;
};

CpuInfo read_fields(std::string_view text) {
  CpuInfo info;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = stripped(line.substr(0, colon));
    const std::string_view value = stripped(line.substr(colon + 1));
    if (key == "model name") info.name = value;
    if (key == "vendor_id") info.vendor = value;
    if (key == "flags" || key == "Features") info.flags = value;
    if (key == "cpu family") info.family = real_number(value).value_or(0);
    if (key == "cpu MHz") info.megahertz = std::max(info.megahertz, real_number(value).value_or(0));
    if (key == "bogomips") info.bogomips = real_number(value).value_or(0);
  }
  return info;
}

}  // namespace

CpuSpeed parse_cpu_info(std::string_view text) {
  const CpuInfo info = read_fields(text);
  CpuSpeed speed;
  speed.name = info.name;
  constexpr double kZen5 = 26;
  const bool slow_avx512 = info.vendor == "AuthenticAMD" && info.family < kZen5;
  speed.float32_per_cycle = operations_per_cycle(info.flags, slow_avx512);
  // On x86, two of Linux's BogoMIPS are a cycle of the nominal frequency, which is what all cores
  // keep up under load; elsewhere they count a timer.
  constexpr double kBogus = 100;
  if (!info.vendor.empty() && info.bogomips > kBogus) {
    speed.gigahertz = info.bogomips / 2000;
  } else if (info.megahertz > 0) {
    speed.gigahertz = info.megahertz / 1000;
  }
  return speed;
}

CpuSpeed read_cpu_speed() {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CpuSpeed speed = parse_cpu_info(text);
  double kilohertz = 0;
  const bool said = text.find("bogomips") != std::string::npos;
  if (!said &&
      std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq") >> kilohertz &&
      kilohertz > 0) {
    speed.gigahertz = kilohertz / 1e6;
  }
  return speed;
}

}  // namespace emplace
