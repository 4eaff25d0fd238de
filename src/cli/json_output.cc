#include "cli/json_output.h"

#include <emplace/types.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace emplace::cli {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json header_json(const JsonHeader& header) {
  Json json{{"format", header.format}, {"version", version()}};
  if (!header.model.empty()) json["model"] = header.model;
  if (!header.made_with.empty()) json["made_with"] = Json::parse(made_with_json(header.made_with));
  if (header.problem != nullptr) {
    json["graph"] = header.problem->graph().name();
    json["cluster"] = header.problem->cluster().name();
  }
  if (header.objective) {
    json["objective"] = header.objective->match([](const StepTime&) { return "latency"; },
                                                [](const StreamPeriod&) { return "throughput"; });
  }
  if (header.slow_overlap) {
    json["overlap_slowdown"] = {{"factor", header.slow_overlap->factor},
                                {"step_ns", header.slow_overlap->step}};
    if (const auto full = header.slow_overlap->at_full_speed) {
      json["overlap_slowdown"]["full_speed_step_ns"] = *full;
    }
  }
  if (header.budget != nullptr) {
    json["budget"] = {{"seconds", value_or_null(header.budget->seconds)},
                      {"evaluations", value_or_null(header.budget->evaluations)},
                      {"threads", header.budget->threads}};
  }
  if (header.ranks > 1) json["ranks"] = {{"started", header.ranks}, {"lost", header.lost_ranks}};
  return json;
}

}  // namespace

std::string with_header(const JsonHeader& header, const std::string& object) {
  Json json = header_json(header);
  json.update(Json::parse(object));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string header_line(const JsonHeader& header) {
  return header_json(header).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::pair<std::string, std::string>> header_columns(const JsonHeader& header) {
  std::vector<std::pair<std::string, std::string>> columns;
  const Json json = header_json(header);
  for (const auto& [name, value] : json.items()) {
    if (name == "format") continue;
    if (name == "budget") {
      for (const auto& [limit, number] : value.items()) {
        columns.emplace_back("budget_" + limit, number.is_null() ? "" : number.dump());
      }
    } else {
      columns.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return columns;
}

}  // namespace emplace::cli
