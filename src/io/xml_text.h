// Text in XML: SVG pictures and GraphML.
#pragma once

#include <string>
#include <string_view>

namespace emplace {

inline std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        // XML has no way to write other control characters.
        result += static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' ? '?' : c;
    }
  }
  return result;
}

}  // namespace emplace
