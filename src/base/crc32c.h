// The Castagnoli checksum (CRC-32C, RFC 3720).
#pragma once

#include <cstdint>
#include <string_view>

namespace emplace {

std::uint32_t crc32c(std::string_view bytes);

}  // namespace emplace
