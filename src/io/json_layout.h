// JSON for people and line-based tools: an entry a line, what is inside it on the same.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace emplace {

// Objects and lists down to `depth` have a line for each entry; bytes that are not UTF-8 are
// replaced. With a line end.
std::string laid_out(const nlohmann::ordered_json& json, int depth);

}  // namespace emplace
