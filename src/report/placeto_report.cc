#include "report/placeto_report.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "sim/placeto.h"
#include "sim/simulator.h"

#include "report/table.h"

namespace emplace {

PlacetoReport simulate_as_placeto(const Problem& problem, const Placement& placement) {
  const std::shared_ptr<const Problem> theirs = placeto_problem(problem);
  const Timeline timeline = Simulator(theirs).run(placement, {});
  PlacetoReport report{.makespan = placeto_makespan(*theirs, placement, timeline),
                       .devices = {},
                       .peaks = placeto_peaks(*theirs, placement, timeline)};
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    report.devices.push_back(problem.cluster().device(device).name);
  }
  return report;
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
  nlohmann::ordered_json json{{"rules", "placeto"}, {"makespan_ns", report.makespan}};
  json["devices"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    json["devices"].push_back({{"name", report.devices[i]}, {"peak_bytes", report.peaks[i]}});
  }
  return json.dump();
}

}  // namespace emplace
