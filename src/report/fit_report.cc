#include "report/fit_report.h"

#include <fmt/format.h>

#include "base/units.h"

#include "report/table.h"

namespace emplace {
namespace {

std::string percent_off(double share) {
  return fmt::format("{:+.1f} %", share * 100);
}

std::string milliseconds(double microseconds) {
  return fmt::format("{:.2f}", microseconds / 1000);
}

std::string graph_table(std::span<const Graph* const> graphs, const std::string& measured,
                        const DeviceKind& start, const DeviceKind& fitted) {
  using Align = Table::Align;
  std::vector<Table::Column> columns{{"graph"},
                                     {"ops", Align::kRight},
                                     {"measured ms", Align::kRight},
                                     {"fitted ms", Align::kRight},
                                     {"error", Align::kRight}};
  std::vector<FitError> left_out;
  if (graphs.size() >= 2) {
    columns.push_back({"left out", Align::kRight});
    left_out = leave_one_out(graphs, measured, start);
  }
  Table table(std::move(columns));
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const FitError error = graph_error(*graphs[i], measured, fitted);
    std::vector<std::string> cells{error.name, format_count(error.ops),
                                   milliseconds(error.measured_us), milliseconds(error.fitted_us),
                                   percent_off(error.total_error())};
    if (!left_out.empty()) cells.push_back(percent_off(left_out[i].total_error()));
    table.add(std::move(cells));
  }
  return table.to_string();
}

std::string class_table(std::span<const Graph* const> graphs, const std::string& measured,
                        const DeviceKind& fitted) {
  using Align = Table::Align;
  Table table({{"class"},
               {"ops", Align::kRight},
               {"measured ms", Align::kRight},
               {"error", Align::kRight},
               {"per op", Align::kRight}});
  for (const FitError& error : class_errors(graphs, measured, fitted)) {
    table.add({error.name, format_count(error.ops), milliseconds(error.measured_us),
               percent_off(error.total_error()), fmt::format("{:.1f} %", error.op_error * 100)});
  }
  return table.to_string();
}

}  // namespace

std::string fit_report(std::span<const Graph* const> graphs, const std::string& measured,
                       const DeviceKind& start, const DeviceKind& fitted) {
  return fmt::format("{}{}\n{}", graph_table(graphs, measured, start, fitted),
                     graphs.size() >= 2 ? "left out: with curves fitted to the other graphs\n" : "",
                     class_table(graphs, measured, fitted));
}

}  // namespace emplace
