#include "cli/terminal.h"

#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace emplace::cli {

bool moves_cursor(int file) {
  if (isatty(file) == 0) return false;
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

bool shows_colours(int file) {
  const char* refused = std::getenv("NO_COLOR");
  return moves_cursor(file) && (refused == nullptr || *refused == '\0');
}

TerminalSize terminal_size(int file) {
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

std::string cut_to_columns(const std::string& text, std::size_t columns) {
  std::size_t taken = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (starts && taken++ == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace emplace::cli
