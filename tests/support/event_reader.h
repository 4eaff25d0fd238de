// Reads TensorBoard's event files with protobuf's own decoder and a checksum of its own, to hold
// the writer to the format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/testing_names.h"

namespace emplace::testing {

struct ReadEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string file_version;
  std::map<std::string, float> scalars;
  bool session_start = false;
};

// Throws std::runtime_error where the bytes break the format.
std::vector<ReadEvent> read_events(const std::string& bytes);

// Of the folder's event files, in the order of their names, what TensorBoard would show: a session
// that starts at a step takes the place of what came before from there on.
std::vector<ReadEvent> shown_events(const std::string& folder);

}  // namespace emplace::testing
