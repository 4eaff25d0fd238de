#include "report/page.h"

#include <cstdint>

#include <emplace/types.h>
#include <fmt/format.h>

#include "base/check.h"

#include "io/gzip.h"
#include "report/page_format.h"

namespace emplace {

// web/page.html, which cmake/page.cmake puts into the library.
std::string_view built_page();

namespace {

constexpr std::string_view kPlaceOfData = "EMPLACE_DATA";

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t block = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      const auto byte = i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U;
      block = block << 8U | byte;
    }
    for (std::size_t j = 0; j < 4; ++j) {
      const bool there = i + j <= bytes.size();
      text += there ? kBase64Digits[block >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace

std::string page_html(const std::vector<std::string>& results) {
  const std::string data = fmt::format(R"({{"format":"{}","version":"{}","results":[{}]}})",
                                       kPageFormat, version(), fmt::join(results, ","));
  std::string page(built_page());
  const std::size_t place = page.find(kPlaceOfData);
  EMPLACE_CHECK(place != std::string::npos);
  page.replace(place, kPlaceOfData.size(), base64(gzip(data)));
  return page;
}

}  // namespace emplace
