// A file's bytes as they are.
#pragma once

#include <string>

namespace emplace {

// Throws an Error of kind kSystem that names the file.
std::string read_bytes(const std::string& path);

}  // namespace emplace
