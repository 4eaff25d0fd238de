// How texts for people look: how wide they are, and in which characters. For the whole process: a
// program that knows the terminal says so before it asks for texts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace emplace {

inline constexpr std::size_t kUsualWidth = 100;

std::size_t text_width();
void set_text_width(std::size_t columns);

// Characters, not bytes, of UTF-8.
std::size_t display_width(std::string_view text);
// The text, or as many of its characters as fit with an ellipsis behind them.
std::string shortened(const std::string& text, std::size_t columns);

// Lines and bars of tables in ASCII, for terminals that show nothing else.
bool ascii_only();
void set_ascii_only(bool only);

}  // namespace emplace
