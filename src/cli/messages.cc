#include "cli/messages.h"

#include <cstdio>

#include <fmt/core.h>

#include "base/text.h"

namespace emplace::cli {
namespace {

bool is_quiet = false;

}  // namespace

void say(std::string_view text) {
  const std::string safe = printable(text);
  std::fwrite(safe.data(), 1, safe.size(), stderr);
  std::fflush(stderr);
  std::clearerr(stderr);
}

void add_quiet(Command command) {
  command.flag("-q,--quiet", is_quiet, "Print the answer alone: no progress, notes or warnings");
}

bool quiet() {
  return is_quiet;
}

void note(const std::string& text) {
  if (!is_quiet) say(fmt::format("note: {}\n", text));
}

void warn(const std::string& text) {
  if (!is_quiet) say(fmt::format("warning: {}\n", text));
}

void note_interrupted() {
  note("interrupted; this is the best so far");
}

}  // namespace emplace::cli
