#include <algorithm>
#include <array>
#include <cmath>
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

Json json_result(const Json& answer, const Json& cluster) {
  return {{"title", fmt::format("{} on {}", answer.value("graph", answer.value("model", "a model")),
                                cluster.is_string() ? cluster.get<std::string>() : "a cluster")},
          {"kind", "json"},
          {"command", ""}};
}

Json result_of_run(Json execution, const std::string& path) {
  if (execution.contains("failure")) {
    fail_input("{}: no step came to its end: {}", path, execution.value("failure", ""));
  }
  constexpr double kNanoseconds = 1e6;
  Json result = json_result(execution, execution.value("cluster", Json()));
  result["kind"] = "run";
  result["answer"] = {
      {"step_ns", std::llround(execution.value("predicted_ms", 0.0) * kNanoseconds)},
      {"fits", true}};
  for (const char* field : {"version", "model", "graph", "cluster", "made_with"}) {
    if (execution.contains(field)) result["answer"][field] = execution[field];
  }
  result["execution"] = std::move(execution);
  return result;
}

// The best on each of them, or why nothing fits there.
std::vector<Json> results_of_clusters(const Json& comparison) {
  std::vector<Json> results;
  for (const Json& row : comparison.at("clusters")) {
    Json result = json_result(comparison, row.at("cluster"));
    Json answer = row;
    answer.erase("devices");  // their number, where an answer has them
    answer["graph"] = comparison.value("graph", comparison.value("model", ""));
    for (const char* field : {"model", "made_with"}) {
      if (comparison.contains(field)) answer[field] = comparison[field];
    }
    if (row.contains("reason")) result["why_nothing_fits"] = row["reason"];
    result["answer"] = std::move(answer);
    results.push_back(std::move(result));
  }
  return results;
}

// What a page would have of it.
std::vector<Json> results_of_answer(Json answer, const std::string& path) {
  const std::string format = answer.value("format", "");
  Json result = json_result(answer, answer.value("cluster", Json()));
  if (format == "emplace.answer/1" && answer.contains("step_ns")) {
    result["answer"] = std::move(answer);
  } else if (format == "emplace.comparison/1" && !answer.value("runs", Json::array()).empty()) {
    Json best = answer;
    best.erase("runs");
    best.erase("placers");
    best.update(answer["runs"][0]);
    result["answer"] = std::move(best);
    result["comparison"] = std::move(answer);
  } else if (format == "emplace.cluster-comparison/1" &&
             !answer.value("clusters", Json::array()).empty()) {
    return results_of_clusters(answer);
  } else if (format == "emplace.execution/1") {
    return {result_of_run(std::move(answer), path)};
  } else if (format == "emplace.training/1") {
    result["title"] = fmt::format("Training of {}", answer.value("policy", "a policy"));
    result["answer"] = std::move(answer);
    result["training"] = Json::object();
  } else if (format == "emplace.partition-answer/1") {
    result["answer"] = answer;
    result["partition"] = std::move(answer);
  } else {
    fail_input(
        "{}: has the format '{}'; expected a page, its data ({}), or what --json printed of an "
        "answer, a comparison, a run, a partition or a training",
        path, format, kPageFormat);
  }
  return {std::move(result)};
}

std::vector<std::string> results_of(Json data, const std::string& path) {
  if (!data.is_object()) fail_input("{}: expected a JSON object", path);
  if (data.value("format", "") != kPageFormat) {
    std::vector<std::string> results;
    for (const Json& result : results_of_answer(std::move(data), path)) {
      results.push_back(dumped(result));
    }
    return results;
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
