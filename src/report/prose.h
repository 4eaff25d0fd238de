// Sentences for people.
#pragma once

#include <string>
#include <vector>

namespace emplace {

// "a", "a and b", "a, b and c".
std::string join_words(const std::vector<std::string>& items);

// As lines: indented, and broken where it is too long for one.
std::string wrapped(const std::string& text);

// How long a search took: "12 ms", "3.20 s".
std::string search_time(double seconds);

}  // namespace emplace
