#include "io/curve_table.h"

#include <charconv>
#include <limits>
#include <optional>

#include "base/error.h"

namespace emplace {
namespace {

// The number that the line has at the front, of which there may be one more; the line loses it and
// its comma.
std::optional<std::int64_t> take_count(std::string_view& line) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  const auto length = static_cast<std::size_t>(end - line.data());
  if (error != std::errc() || length >= line.size() || line[length] != ',') return std::nullopt;
  if (number < 0 || number == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  line.remove_prefix(length + 1);
  return number;
}

}  // namespace

KeptRows rows_before(std::string_view table, const std::string& header, std::int64_t round,
                     const std::string& path) {
  if (!table.starts_with(header)) {
    fail_input("{}: is not a table of learning curves of this version; expected the header {}",
               path, std::string_view(header).substr(0, header.size() - 1));
  }
  KeptRows kept{table.substr(0, header.size())};
  while (true) {
    const std::size_t begin = kept.table.size();
    const std::size_t end = table.find('\n', begin);
    if (end == std::string_view::npos) return kept;
    std::string_view line = table.substr(begin, end - begin);
    const auto own_round = take_count(line);
    const auto evaluations = take_count(line);
    if (!own_round || !evaluations || *own_round >= round) return kept;
    kept = {table.substr(0, end + 1), *own_round, *evaluations};
  }
}

}  // namespace emplace
