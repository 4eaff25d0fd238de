// How fast work gets done and what it costs, told to people and to programs.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "run/rates.h"

namespace emplace {

// A line of speed and, where there are prices, one of cost; nothing where nothing is known.
std::string to_text(const Rates& rates);
// The object `rates` of docs/formats.md: what is known.
nlohmann::ordered_json to_json(const Rates& rates);

// "163", "1.52 million"; "0.0012", "3.40", "1,250": to three digits or so.
std::string format_rate(double rate);
std::string format_money(double money);
// Cells of tables: empty where it is not known.
std::string rate_cell(const std::optional<double>& rate);
std::string percent_cell(const std::optional<double>& share);
std::string money_cell(const std::optional<double>& money);

}  // namespace emplace
