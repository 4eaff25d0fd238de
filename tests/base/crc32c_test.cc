#include "base/crc32c.h"

#include <gtest/gtest.h>

namespace emplace {
namespace {

// RFC 3720, appendix B.4, and the catalogue's check value.
TEST(Crc32c, known_values) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising += byte;
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  const std::string falling(rising.rbegin(), rising.rend());
  EXPECT_EQ(crc32c(falling), 0x113fdb5cu);
}

}  // namespace
}  // namespace emplace
