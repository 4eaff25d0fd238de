#include "report/page.h"

#include <array>
#include <cstdint>

#include <emplace/types.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/error.h"

#include "io/file.h"
#include "io/gzip.h"

namespace emplace {

// web/page.html, which cmake/page.cmake puts into the library.
std::string_view built_page();

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kReportFormat = "emplace.report/1";
constexpr std::string_view kPlaceOfData = "EMPLACE_DATA";
constexpr std::string_view kDataTag = "<script id=\"data\" type=\"text/plain\">";
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
      text += there ? kDigits[block >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return text;
}

std::string from_base64(std::string_view text, const std::string& path) {
  std::array<int, 256> value{};
  value.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    value[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t block = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=' || c == '\n' || c == '\r') continue;
    const int digit = value[static_cast<unsigned char>(c)];
    if (digit < 0) fail_input("{}: the page's data is corrupt", path);
    block = (block << 6U | static_cast<std::uint32_t>(digit)) & 0xffffffU;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(block >> bits & 0xffU);
  }
  return bytes;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json parsed(const std::string& text, const std::string& path) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    fail_input(
        "{}: expected a page of --report, the data downloaded from one, or what --json printed; it "
        "is neither a page nor JSON ({})",
        path, error.what());
  }
}

// What a page would have as one result.
Json result_of_answer(Json answer, const std::string& path) {
  const std::string format = answer.value("format", "");
  Json result{{"title", fmt::format("{} on {}", answer.value("graph", "a model"),
                                    answer.value("cluster", "a cluster"))},
              {"kind", "json"},
              {"command", ""}};
  if (format == "emplace.answer/1" && answer.contains("step_ns")) {
    result["answer"] = std::move(answer);
  } else if (format == "emplace.comparison/1" && !answer.value("runs", Json::array()).empty()) {
    Json best = answer;
    best.erase("runs");
    best.erase("placers");
    best.update(answer["runs"][0]);
    result["answer"] = std::move(best);
    result["comparison"] = std::move(answer);
  } else if (format == "emplace.training/1") {
    result["title"] = fmt::format("Training of {}", answer.value("policy", "a policy"));
    result["answer"] = std::move(answer);
    result["training"] = Json::object();
  } else if (format == "emplace.partition-answer/1") {
    result["answer"] = answer;
    result["partition"] = std::move(answer);
  } else {
    fail_input(
        "{}: has the format '{}'; expected a page, its data ({}), an answer, a comparison, a "
        "training or a partition's answer",
        path, format, kReportFormat);
  }
  return result;
}

std::vector<std::string> results_of(Json data, const std::string& path) {
  if (!data.is_object()) fail_input("{}: expected a JSON object", path);
  if (data.value("format", "") != kReportFormat) {
    return {dumped(result_of_answer(std::move(data), path))};
  }
  if (!data.contains("results") || !data["results"].is_array() || data["results"].empty()) {
    fail_input("{}: 'results': expected a list of results", path);
  }
  std::vector<std::string> results;
  for (const Json& result : data["results"]) {
    if (!result.is_object() || !result.contains("answer")) {
      fail_input("{}: 'results': expected objects with an 'answer'", path);
    }
    results.push_back(dumped(result));
  }
  return results;
}

}  // namespace

std::string page_html(const std::vector<std::string>& results) {
  const std::string data = fmt::format(R"({{"format":"{}","version":"{}","results":[{}]}})",
                                       kReportFormat, version(), fmt::join(results, ","));
  std::string page(built_page());
  const std::size_t place = page.find(kPlaceOfData);
  EMPLACE_CHECK(place != std::string::npos);
  page.replace(place, kPlaceOfData.size(), base64(gzip(data)));
  return page;
}

std::vector<std::string> results_in(const std::string& path) {
  std::string text = read_file(path);
  if (const std::size_t tag = text.find(kDataTag); tag != std::string::npos) {
    const std::size_t begin = tag + kDataTag.size();
    const std::size_t end = text.find("</script>", begin);
    if (end == std::string::npos) fail_input("{}: the page ends too early", path);
    text = gunzip(from_base64(std::string_view(text).substr(begin, end - begin), path), path);
  }
  try {
    return results_of(parsed(text, path), path);
  } catch (const Json::type_error& error) {
    fail_input("{}: a field is not what it should be: {}", path, error.what());
  }
}

}  // namespace emplace
