// Sentences for people.
#pragma once

#include <string>
#include <vector>

namespace emplace {

// "a", "a and b", "a, b and c".
std::string join_words(const std::vector<std::string>& items);

// As lines: indented, and broken where it is too long for one.
std::string wrapped(const std::string& text);

// A report with its long lines broken; those of tables, which have more than spaces between words,
// stay as they are.
std::string fitted(const std::string& report);

}  // namespace emplace
