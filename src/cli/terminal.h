// What the terminal can show.
#pragma once

#include <cstddef>
#include <string>

namespace emplace::cli {

// Whether the file is a terminal that understands escape sequences; TERM=dumb is one that does not.
bool moves_cursor(int file);
// The same, and nobody set NO_COLOR (no-color.org).
bool shows_colours(int file);

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};
TerminalSize terminal_size(int file);

// The first characters of a UTF-8 text without escape sequences, each of which takes one column.
std::string cut_to_columns(const std::string& text, std::size_t columns);

}  // namespace emplace::cli
