#include "io/json_layout.h"

#include "io/json_quote.h"

namespace emplace {
namespace {

void lay_out(const nlohmann::ordered_json& json, int depth, const std::string& indent,
             std::string& text) {
  const bool simple = !json.is_structured() || json.empty();
  if (simple || depth == 0) {
    text += json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    return;
  }
  text += json.is_object() ? "{" : "[";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    text += (first ? "\n" : ",\n") + indent + " ";
    first = false;
    if (json.is_object()) text += json_quoted(key) + ": ";
    lay_out(value, depth - 1, indent + " ", text);
  }
  text += "\n" + indent + (json.is_object() ? "}" : "]");
}

}  // namespace

std::string laid_out(const nlohmann::ordered_json& json, int depth) {
  std::string text;
  lay_out(json, depth, "", text);
  return text + "\n";
}

}  // namespace emplace
