#include "dist/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace emplace::dist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Wire, WhatIsWrittenIsRead) {
  Writer writer;
  writer.number<std::int64_t>(-3).flag(true).text("a\0b").numbers<std::uint16_t>({1, 2, 65535});
  const std::string bytes = writer.take();
  Reader reader(bytes);
  EXPECT_EQ(reader.number<std::int64_t>(), -3);
  EXPECT_TRUE(reader.flag());
  EXPECT_EQ(reader.text(), "a");
  EXPECT_THAT(reader.numbers<std::uint16_t>(), ElementsAre(1, 2, 65535));
  reader.end();
}

TEST(Wire, LengthsAreCheckedBeforeMemoryIsTaken) {
  const std::string bytes = Writer().number<std::uint64_t>(std::uint64_t{1} << 60).take();
  EXPECT_THAT(error_text([&] { Reader(bytes).numbers<std::int64_t>(); }),
              HasSubstr("announces 1152921504606846976 elements and has 0 more bytes"));
  EXPECT_THAT(error_text([&] { Reader(bytes).text(); }), HasSubstr("announces"));
}

TEST(Wire, EveryCutIsNoticed) {
  const std::string bytes =
      Writer().number<std::int32_t>(7).text("seven").numbers<double>({1, 2}).take();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(
        {
          Reader reader(std::string_view(bytes).substr(0, size));
          reader.number<std::int32_t>();
          reader.text();
          reader.numbers<double>();
        },
        Error)
        << size;
  }
}

TEST(Wire, WhatIsLeftOverIsNoticed) {
  EXPECT_THAT(error_text([] { Reader("xy").end(); }), HasSubstr("2 bytes too long"));
  EXPECT_THAT(error_text([] { Reader("\x02").flag(); }), HasSubstr("2 for a flag"));
}

}  // namespace
}  // namespace emplace::dist
