// A string as JSON writes it, quotes included; bytes that are not UTF-8 are replaced.
#pragma once

#include <string>
#include <string_view>

namespace emplace {

std::string json_quoted(std::string_view text);

}  // namespace emplace
