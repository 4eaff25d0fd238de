#include "io/json_quote.h"

#include <nlohmann/json.hpp>

namespace emplace {

std::string json_quoted(std::string_view text) {
  using Json = nlohmann::json;
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace emplace
