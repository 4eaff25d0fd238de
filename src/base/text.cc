#include "base/text.h"

#include <cstdint>

#include <fmt/format.h>

namespace emplace {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;

struct Character {
  std::uint32_t code = kNone;  // kNone where the bytes are no UTF-8
  std::size_t length = 1;
};

// The first character of a text that is not empty. Overlong forms, halves of pairs and what is
// beyond the last character are no UTF-8.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > text.size()) return {};
  std::uint32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length};
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character first = first_character(text);
    if (first.code == kNone) return false;
    text.remove_prefix(first.length);
  }
  return true;
}

std::string_view fault_of_name(std::string_view name) {
  while (!name.empty()) {
    const Character first = first_character(name);
    if (first.code == kNone) return "is not UTF-8";
    if (is_control(first.code)) return "has a control character";
    name.remove_prefix(first.length);
  }
  return {};
}

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Character first = first_character(text);
    const bool layout = first.code == '\n' || first.code == '\t';
    if (first.code == kNone || (is_control(first.code) && !layout)) {
      for (const char c : text.substr(0, first.length)) {
        safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    } else {
      safe += text.substr(0, first.length);
    }
    text.remove_prefix(first.length);
  }
  return safe;
}

}  // namespace emplace
