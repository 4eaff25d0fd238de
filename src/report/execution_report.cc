#include "report/execution_report.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <nlohmann/json.hpp>

#include "report/table.h"
#include "report/text_style.h"

namespace emplace {
namespace {

constexpr std::size_t kTypesShown = 8;
constexpr std::string_view kIndent = "           ";

std::string step_lines(const Execution& execution) {
  const TimeSpread step = execution.measurement.step();
  return fmt::format(
      "measured   {} a step, half of {} between {} and {}\n"
      "predicted  {}, {:.3f} times as long\n"
      "oracle     {}, {:.3f} times as long: predicted from the op times of this run\n",
      format_time(step.median), execution.measurement.steps.size(), format_time(step.low),
      format_time(step.high), format_time(execution.predicted.step), execution.predicted_ratio(),
      format_time(execution.oracle), execution.oracle_ratio());
}

// All of a short run, else of every so many steps a dozen at most.
std::string losses_by_step(const std::vector<double>& losses) {
  constexpr std::size_t kShort = 30;
  constexpr std::size_t kMost = 12;
  std::size_t every = 1;
  while (losses.size() > kShort && every * kMost < losses.size()) {
    const bool two = fmt::format("{}", every).starts_with('2');
    every = two ? every / 2 * 5 : every * 2;
  }
  std::string line =
      every == 1 ? "by step:" : fmt::format("in steps 1, {}, {}, ...:", 1 + every, 1 + 2 * every);
  std::string text;
  for (std::size_t i = 0; i < losses.size(); i += every) {
    const std::string loss =
        fmt::format(" {:.4g}{}", losses[i], i + every < losses.size() ? "," : "");
    if (kIndent.size() + line.size() + loss.size() > std::min(text_width(), kUsualWidth)) {
      text += fmt::format("{}{}\n", kIndent, line);
      line = " ";
    }
    line += loss;
  }
  return text + fmt::format("{}{}\n", kIndent, line);
}

std::string loss_lines(const Execution& execution) {
  const std::vector<double>& losses = execution.measurement.losses;
  if (losses.empty()) return "";
  return fmt::format("loss       {:.6g} in the first step, {:.6g} in step {}\n", losses.front(),
                     losses.back(), losses.size()) +
         (losses.size() > 2 ? losses_by_step(losses) : "");
}

std::string drift_line(const Execution& execution) {
  if (!execution.drift) return "";
  const double percent = 100 * (*execution.drift - 1);
  return fmt::format("drift      the same work took {:.1f} % {} afterwards than before\n",
                     std::abs(percent), percent < 0 ? "less" : "more");
}

std::string memory_table(const Execution& execution) {
  Table table({{"device"},
               {"busy", Table::Align::kRight},
               {"peak measured", Table::Align::kRight},
               {"predicted", Table::Align::kRight},
               {"ratio", Table::Align::kRight},
               {"kept beside", Table::Align::kRight}});
  const double step = static_cast<double>(execution.measured.step);
  for (DeviceId id = 0; id < execution.problem->num_devices(); ++id) {
    const exec::MemoryRecord& memory = execution.measurement.memory[id];
    const Bytes predicted = execution.predicted.devices[id].peak;
    const double busy = static_cast<double>(execution.measured.devices[id].busy);
    table.add({execution.problem->cluster().device(id).name,
               busy == 0 ? "" : fmt::format("{:.0f} %", 100 * busy / step),
               format_bytes(memory.peak), format_bytes(predicted),
               predicted == 0 ? ""
                              : fmt::format("{:.3f}", static_cast<double>(memory.peak) /
                                                          static_cast<double>(predicted)),
               format_bytes(memory.cached)});
  }
  return "\n" + table.to_string();
}

std::string type_table(const Execution& execution) {
  Table table({{"op type"},
               {"ops", Table::Align::kRight},
               {"measured", Table::Align::kRight},
               {"predicted", Table::Align::kRight},
               {"ratio", Table::Align::kRight}});
  for (std::size_t i = 0; i < std::min(kTypesShown, execution.types.size()); ++i) {
    const TypeTimes& type = execution.types[i];
    const double ratio = type.measured == 0 ? 0
                                            : static_cast<double>(type.predicted) /
                                                  static_cast<double>(type.measured);
    table.add({type.type, fmt::format("{}", type.ops), format_time(type.measured),
               format_time(type.predicted), fmt::format("{:.2f}", ratio)});
  }
  return "\n" + table.to_string();
}

double milliseconds_of(Nanoseconds time) {
  return static_cast<double>(time) / 1e6;
}

}  // namespace

std::string to_text(const Execution& execution) {
  if (execution.failed()) return fmt::format("failed: {}\n", execution.measurement.failure->text);
  return step_lines(execution) + drift_line(execution) + loss_lines(execution) +
         memory_table(execution) + type_table(execution);
}

std::string to_json(const Execution& execution) {
  nlohmann::ordered_json json;
  json["warnings"] = execution.warnings;
  if (execution.failed()) {
    json["failure"] = execution.measurement.failure->text;
    return json.dump();
  }
  const TimeSpread step = execution.measurement.step();
  json["steps"] = execution.measurement.steps.size();
  json["step_ms"] = milliseconds_of(step.median);
  json["steps_ms"] = nlohmann::ordered_json::array();
  for (const Nanoseconds time : execution.measurement.steps) {
    json["steps_ms"].push_back(milliseconds_of(time));
  }
  json["step_ms_quartiles"] = {milliseconds_of(step.low), milliseconds_of(step.high)};
  json["predicted_ms"] = milliseconds_of(execution.predicted.step);
  json["predicted_ratio"] = execution.predicted_ratio();
  json["oracle_ms"] = milliseconds_of(execution.oracle);
  json["oracle_ratio"] = execution.oracle_ratio();
  json["drift"] =
      execution.drift ? nlohmann::ordered_json(*execution.drift) : nlohmann::ordered_json();
  json["losses"] = execution.measurement.losses;
  for (DeviceId id = 0; id < execution.problem->num_devices(); ++id) {
    const exec::MemoryRecord& memory = execution.measurement.memory[id];
    json["devices"].push_back({{"name", execution.problem->cluster().device(id).name},
                               {"busy_ms", milliseconds_of(execution.measured.devices[id].busy)},
                               {"peak_bytes", memory.peak},
                               {"predicted_peak_bytes", execution.predicted.devices[id].peak},
                               {"cached_bytes", memory.cached}});
  }
  for (const TypeTimes& type : execution.types) {
    json["types"].push_back({{"type", type.type},
                             {"ops", type.ops},
                             {"measured_ms", milliseconds_of(type.measured)},
                             {"predicted_ms", milliseconds_of(type.predicted)}});
  }
  return json.dump();
}

}  // namespace emplace
