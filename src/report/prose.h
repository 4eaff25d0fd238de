// Sentences for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace emplace {

// "a", "a and b", "a, b and c".
std::string join_words(const std::vector<std::string>& items);

// "1 device", "4,000 devices".
std::string count_of(std::int64_t number, const std::string& thing);

// As lines: indented, and broken where it is too long for one.
std::string wrapped(const std::string& text);
// Back to one line.
std::string unwrapped(const std::string& lines);

// How long a search took: "12 ms", "3.20 s".
std::string search_time(double seconds);

// A report with its long lines broken; those of tables, which have more than spaces between words,
// stay as they are.
std::string fitted(const std::string& report);

}  // namespace emplace
