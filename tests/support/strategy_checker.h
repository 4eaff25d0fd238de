// Reads a strategy-selection problem and a selection by itself, from the JSON text, and adds
// everything up by the definition. Shares no code with the solver or its reader.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/testing_names.h"

namespace emplace::testing {

// Wide enough for any sum of costs.
__extension__ typedef __int128 Integer;

struct CheckedSelection {
  std::string error;       // empty when the selection is valid
  Integer cost = 0;        // including what is forbidden
  bool forbidden = false;  // something of 10^18 or more was chosen
  bool fits = true;        // usage stays within the limit at every time
};

// `problem`: the text of an IOPDDL file.
CheckedSelection check_selection(const std::string& problem,
                                 const std::vector<std::int32_t>& strategies);

// Ungzips where needed.
std::string read_plain(const std::string& path);

}  // namespace emplace::testing
