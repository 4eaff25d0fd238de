// What there is to choose from: placers, partition methods and schedulers, and their options.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/options.h"

namespace emplace {

// With their papers' values, where they have any.
std::string options_table(const std::vector<OptionInfo>& options);
nlohmann::ordered_json options_json(const std::vector<OptionInfo>& options);

// One placer or partition method with its options. Throws an Error for an unknown key.
std::string method_text(const std::string& key);
std::string method_json(const std::string& key);

// All of them.
std::string methods_text();
std::string methods_json();
// docs/placers.md.
std::string methods_page();

}  // namespace emplace
