#include "cli/messages.h"

#include <fmt/core.h>

namespace emplace::cli {
namespace {

bool is_quiet = false;

}  // namespace

void add_quiet(Command command) {
  command.flag("-q,--quiet", is_quiet, "Print no progress, notes or warnings: the answer alone");
}

bool quiet() {
  return is_quiet;
}

void note(const std::string& text) {
  if (!is_quiet) fmt::print(stderr, "note: {}\n", text);
}

void warn(const std::string& text) {
  if (!is_quiet) fmt::print(stderr, "warning: {}\n", text);
}

void note_interrupted() {
  note("interrupted; this is the best so far");
}

}  // namespace emplace::cli
