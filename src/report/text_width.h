// How wide texts for people are.
#pragma once

#include <cstddef>

namespace emplace {

inline constexpr std::size_t kUsualWidth = 100;

std::size_t text_width();
// For the whole process: a program that knows the terminal says so before it asks for texts.
void set_text_width(std::size_t columns);

}  // namespace emplace
