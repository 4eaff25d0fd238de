// How results lie in a page: JSON, packed, in base 64, in an element of its own.
#pragma once

#include <string_view>

namespace emplace {

inline constexpr std::string_view kPageFormat = "emplace.report/1";
inline constexpr std::string_view kPageDataTag = "<script id=\"data\" type=\"text/plain\">";
inline constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace emplace
