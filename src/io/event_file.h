// TensorBoard's event files: records with checksums around protobuf messages (io/event.proto).
// Whole records are appended, so the file can be read while it grows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/append_file.h"

namespace emplace {

struct Scalar {
  std::string_view tag;
  double value = 0;
};

// What our event files' names end in.
inline constexpr std::string_view kEventFileEnding = ".emplace";

class EventFile {
 public:
  // A new file in the folder, named after the time, in seconds since 1970, so that files of one
  // folder sort in the order in which they were begun.
  EventFile(const std::string& folder, double wall_time);

  // What other files of the folder have from this step on no longer counts.
  void restart_at(double wall_time, std::int64_t step);
  void add(double wall_time, std::int64_t step, std::span<const Scalar> scalars);

 private:
  AppendFile file_;
};

}  // namespace emplace
