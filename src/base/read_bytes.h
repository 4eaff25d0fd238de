// A file's bytes as they are; of "-", standard input's.
#pragma once

#include <string>

namespace emplace {

// Throws an Error of kind kSystem that names the file.
std::string read_bytes(const std::string& path);

}  // namespace emplace
