#include "io/yaml_json.h"

#include <charconv>

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

namespace emplace {
namespace {

using YamlAsJson = nlohmann::ordered_json;

YamlAsJson scalar_json(const YAML::Node& node) {
  const std::string text = node.Scalar();
  if (node.Tag() == "!") return text;  // it was quoted
  if (text == "true" || text == "false") return text == "true";
  std::int64_t whole = 0;
  double real = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, whole).ptr == end && !text.empty()) return whole;
  const auto parsed = std::from_chars(text.data(), end, real);
  if (parsed.ec == std::errc{} && parsed.ptr == end && !text.empty()) return real;
  return text;
}

YamlAsJson node_json(const YAML::Node& node) {
  if (node.IsMap()) {
    YamlAsJson object = YamlAsJson::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = node_json(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    YamlAsJson list = YamlAsJson::array();
    for (const YAML::Node& item : node) list.push_back(node_json(item));
    return list;
  }
  return node.IsScalar() ? scalar_json(node) : YamlAsJson();
}

}  // namespace

std::string yaml_to_json(const std::string& yaml) {
  return node_json(YAML::Load(yaml)).dump(2, ' ', false, YamlAsJson::error_handler_t::replace) +
         "\n";
}

}  // namespace emplace
