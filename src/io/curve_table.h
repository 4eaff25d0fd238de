// The table of learning curves that a run goes on with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace emplace {

// The part of a table that is before a round, the last round in it and the evaluations up to there.
struct KeptRows {
  std::string_view table;
  std::int64_t round = 0;
  std::int64_t evaluations = 0;
};

// The last line may be half a line, of a run that was killed. Throws an Error that names the file
// where its first line is not `header`.
KeptRows rows_before(std::string_view table, const std::string& header, std::int64_t round,
                     const std::string& path);

}  // namespace emplace
