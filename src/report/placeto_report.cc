#include "report/placeto_report.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "sim/placeto.h"

#include "placers/all.h"

#include "report/table.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

PlacetoReport report_on(const Problem& problem, const Placement& placement,
                        const Timeline& timeline) {
  PlacetoReport report{.makespan = placeto_makespan(problem, placement, timeline),
                       .devices = {},
                       .peaks = placeto_peaks(problem, placement, timeline)};
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    report.devices.push_back(problem.cluster().device(device).name);
  }
  return report;
}

Json json_of_makespan(const PlacetoReport& report) {
  Json json{{"makespan_ns", report.makespan}};
  json["devices"] = Json::array();
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    json["devices"].push_back({{"name", report.devices[i]}, {"peak_bytes", report.peaks[i]}});
  }
  return json;
}

std::string json_of_row(const ComparisonRow& row, const PlacetoReport& report) {
  Json json{{"placer", row.placer}, {"family", row.family}, {"seed", row.seed}};
  json.update(json_of_makespan(report));
  json["fits"] = row.fits;
  json["shortfall_bytes"] = row.short_by;
  json["transfers"] = row.transfers;
  json["transfer_bytes"] = row.transfer_bytes;
  json["evaluations"] = row.evaluations;
  json["seconds"] = row.seconds;
  return json.dump();
}

}  // namespace

PlacetoReport simulate_as_placeto(const Problem& problem, const Placement& placement) {
  const std::shared_ptr<const Problem> theirs = placeto_problem(problem);
  return report_on(*theirs, placement, Simulator(theirs).run(placement, {}));
}

std::vector<ComparisonRow> rows_as_placeto(const Simulator& simulator,
                                           const std::vector<RunResult>& results) {
  const Problem& problem = simulator.problem();
  std::vector<ComparisonRow> rows;
  for (const RunResult& result : results) {
    const Timeline timeline = simulator.run(result.result.placement, {});
    const PlacetoReport report = report_on(problem, result.result.placement, timeline);
    ComparisonRow row{.placer = result.run.placer.to_string(),
                      .family = all_placers().info(result.run.placer.key).family,
                      .scheduler = "fifo",
                      .seed = result.run.seed,
                      .time = report.makespan,
                      .fits = result.evaluation.fits(),
                      .short_by = result.evaluation.overflow,
                      .transfers = timeline.num_transfers,
                      .transfer_bytes = timeline.transfer_bytes,
                      .evaluations = result.evaluations,
                      .rates = {},
                      .seconds = result.seconds,
                      .json = {}};
    for (DeviceId device = 0; device < problem.num_devices(); ++device) {
      const Bytes memory = problem.cluster().device(device).memory;
      if (memory == kUnlimited || memory == 0) continue;
      row.fullest_memory = std::max(row.fullest_memory, static_cast<double>(report.peaks[device]) /
                                                            static_cast<double>(memory));
    }
    row.json = json_of_row(row, report);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string to_text(const PlacetoReport& report) {
  Table table({{"device"}, {"peak", Table::Align::kRight}});
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    table.add({report.devices[i], format_bytes(report.peaks[i])});
  }
  return fmt::format("makespan by Placeto's simulator {}\n\n{}", format_time(report.makespan),
                     table.to_string());
}

std::string to_json(const PlacetoReport& report) {
  Json json{{"rules", "placeto"}};
  json.update(json_of_makespan(report));
  return json.dump();
}

std::string comparison_json_as_placeto(const std::vector<ComparisonRow>& rows) {
  return "{\"rules\": \"placeto\", " + placers_json(rows, kPlacetoTimes) + ",\n" + runs_json(rows) +
         "}\n";
}

}  // namespace emplace
