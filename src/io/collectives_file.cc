#include "io/collectives_file.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/limits.h"

#include "cluster/cluster.h"

#include "io/file.h"

namespace emplace {
namespace {

constexpr std::string_view kHeader = "op,devices,bytes,microseconds";
constexpr std::string_view kLongHeader = "op,devices,bytes,microseconds,machines";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const auto comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

template <class Number>
Number number_in(std::string_view text, std::string_view field, Number least, Number most) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(number >= least) || !(number <= most)) {
    fail_input("{}: '{}' is not a number from {} to {}", field, text.substr(0, 40), least, most);
  }
  return number;
}

void read_line(std::string_view line, std::size_t columns, CollectiveTimes& times) {
  const std::vector<std::string_view> fields = fields_of(line);
  if (fields.size() != columns) {
    fail_input("has {} fields; expected {}: {}", fields.size(), columns,
               columns == 4 ? kHeader : kLongHeader);
  }
  const auto op = parse_collective(fields[0]);
  if (!op) {
    fail_input("op: '{}' is unknown; expected all-reduce, reduce-scatter or all-gather",
               fields[0].substr(0, 40));
  }
  constexpr int kMost = static_cast<int>(Cluster::kMaxDevices);
  const int devices = number_in(fields[1], "devices", 2, kMost);
  const Bytes bytes = number_in<Bytes>(fields[2], "bytes", 1, limits::kCollectiveBytes);
  const double us = number_in(fields[3], "microseconds", 1e-3, 1e12);
  const int machines =
      columns == 4 ? CollectiveTimes::kAnyMachines : number_in(fields[4], "machines", 1, kMost);
  if (machines != CollectiveTimes::kAnyMachines && devices % machines != 0) {
    fail_input("machines: {} devices are not spread evenly over {}", devices, machines);
  }
  if (!times.add(*op, devices, machines, bytes, us)) {
    fail_input("{} of {} bytes among {} devices is there already", fields[0], bytes, devices);
  }
}

}  // namespace

CollectiveTimes read_collectives(const std::string& text, const std::string& path) {
  CollectiveTimes times;
  std::size_t columns = 0;
  std::size_t rows = 0;
  std::string_view left = text;
  for (std::size_t number = 1; !left.empty(); ++number) {
    const auto end = left.find('\n');
    const std::string_view line = trimmed(left.substr(0, end));
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    with_context(fmt::format("{}, line {}", path, number), [&] {
      if (columns == 0) {
        if (line != kHeader && line != kLongHeader) {
          fail_input("expected the header {} or {}", kHeader, kLongHeader);
        }
        columns = line == kHeader ? 4 : 5;
        return;
      }
      if (++rows > limits::kCollectives) {
        fail_input("there are more than {} measurements", limits::kCollectives);
      }
      read_line(line, columns, times);
    });
  }
  if (times.empty()) fail_input("{}: has no measured collectives", path);
  return times;
}

CollectiveTimes read_collectives_file(const std::string& path) {
  return read_collectives(read_file(path), path);
}

}  // namespace emplace
