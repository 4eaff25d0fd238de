// --threads, of commands that search.
#pragma once

#include "cli/command_line.h"

namespace emplace::cli {

inline void add_threads(Command command, int& threads) {
  command
      .integer("--threads", threads, 1, 1024,
               "How many threads a search may use, on each rank. Default: all, shared by the ranks "
               "of a machine; under --evaluations the result does not depend on them")
      .type("N");
}

}  // namespace emplace::cli
