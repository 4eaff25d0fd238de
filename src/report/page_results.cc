#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/limits.h"

#include "io/file.h"
#include "io/gzip.h"
#include "report/page.h"
#include "report/page_format.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

std::string from_base64(std::string_view text, const std::string& path) {
  std::array<int, 256> value{};
  value.fill(-1);
  for (std::size_t i = 0; i < kBase64Digits.size(); ++i) {
    value[static_cast<unsigned char>(kBase64Digits[i])] = static_cast<int>(i);
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

// How deep lists and objects lie in each other, in what may be JSON.
std::size_t nesting(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

Json parsed(const std::string& text, const std::string& path) {
  // What writes it again takes a frame of the stack for each level.
  if (nesting(text) > limits::kJsonDepth) {
    fail_input("{}: lists and objects lie more than {} deep in each other", path,
               limits::kJsonDepth);
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    fail_input(
        "{}: expected a page of --report, the data downloaded from one, or what --json printed; it "
        "is neither a page nor JSON (see byte {})",
        path, error.byte);
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
        path, format, kPageFormat);
  }
  return result;
}

std::vector<std::string> results_of(Json data, const std::string& path) {
  if (!data.is_object()) fail_input("{}: expected a JSON object", path);
  if (data.value("format", "") != kPageFormat) {
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

std::vector<std::string> results_in(const std::string& path) {
  return results_in_text(read_file(path), path);
}

std::vector<std::string> results_in_text(std::string text, const std::string& path) {
  if (const std::size_t tag = text.find(kPageDataTag); tag != std::string::npos) {
    const std::size_t begin = tag + kPageDataTag.size();
    const std::size_t end = text.find("</script>", begin);
    if (end == std::string::npos) fail_input("{}: the page ends too early", path);
    text = gunzip(from_base64(std::string_view(text).substr(begin, end - begin), path), path);
  }
  try {
    return results_of(parsed(text, path), path);
  } catch (const Json::exception& error) {
    fail_input("{}: a field is not what it should be: {}", path, error.what());
  }
}

}  // namespace emplace
