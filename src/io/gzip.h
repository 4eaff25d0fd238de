// Gzip, of whole texts.
#pragma once

#include <string>
#include <string_view>

namespace emplace {

bool has_gzip_magic(std::string_view bytes);
// `name` is what they are called where they are corrupt.
std::string gunzip(std::string_view bytes, const std::string& name);
std::string gzip(std::string_view content);

}  // namespace emplace
