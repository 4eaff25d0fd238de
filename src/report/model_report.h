// What there is in a model, told to people and to programs.
#pragma once

#include <limits>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "run/model_summary.h"

namespace emplace {

inline constexpr int kWholeTree = std::numeric_limits<int>::max();

// A screen of plain text; modules down to `depth` levels.
std::string to_text(const ModelSummary& summary, int depth);
// The object of docs/formats.md.
nlohmann::ordered_json to_json(const ModelSummary& summary, int depth = kWholeTree);

// "19.6 TFLOP", "84 GFLOP".
std::string format_flops(double flops);
// "335.2 M", "1.6 G": how many.
std::string format_millions(std::int64_t number);

}  // namespace emplace
