// How well the analytic cost model fits measured graphs: with the built-in curves of the kind, with
// curves fitted to all graphs given, and, for each graph, with curves fitted to all the others.
//   build/bench/cost [--kind h200] [--curves] [GRAPH...]    default: the captured graphs
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"

#include "cluster/device_kinds.h"

#include "cost/fit.h"

#include "io/readers.h"
#include "support/workloads.h"

namespace {

using namespace emplace;

// Round figures that were fitted to nothing, so that what is left out stays unseen.
DeviceKind uncalibrated(const std::string& name) {
  DeviceKind kind = *find_device_kind(name);
  kind.curves = typical_curves();
  kind.launch_us = 10;
  return kind;
}

void print_curves(const DeviceKind& kind) {
  fmt::print("\nlaunch_us {:.4g}\n| class |", kind.launch_us);
  for (const CurveField& field : curve_fields()) fmt::print(" {} |", field.name);
  fmt::print("\n");
  for (std::size_t i = 0; i < kNumOpClasses; ++i) {
    const auto op_class = static_cast<OpClass>(i);
    fmt::print("| {} |", op_class_name(op_class));
    for (const CurveField& field : curve_fields()) {
      const double value = kind.curves[op_class].*field.value;
      fmt::print(" {} |", uses_field(op_class, field.value) ? fmt::format("{:.3g}", value) : "");
    }
    fmt::print("\n");
  }
}

void print_summary(const char* what, const std::vector<FitError>& errors) {
  double mean = 0;
  double worst = 0;
  for (const FitError& error : errors) {
    mean += std::abs(error.total_error()) / static_cast<double>(errors.size());
    worst = std::max(worst, std::abs(error.total_error()));
  }
  fmt::print("{}: mean {:.1f} %, worst {:.1f} %\n", what, mean * 100, worst * 100);
}

void run(const std::vector<std::string>& files, const std::string& name, bool curves) {
  std::vector<Model> models;
  std::vector<const Graph*> graphs;
  for (const std::string& file : files) models.push_back(read_model(file));
  for (const Model& model : models) {
    const FitError error = graph_error(*model.graph, name, uncalibrated(name));
    if (error.ops > 0) graphs.push_back(model.graph.get());
  }
  const DeviceKind fitted = fit_curves(graphs, name, uncalibrated(name));
  const std::vector<FitError> without = leave_one_out(graphs, name, uncalibrated(name));
  std::vector<FitError> built_in;
  std::vector<FitError> with;
  fmt::print(
      "| graph | ops | measured ms | built in | fitted | left out |\n|---|---|---|---|---|---|\n");
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    built_in.push_back(graph_error(*graphs[i], name, *find_device_kind(name)));
    with.push_back(graph_error(*graphs[i], name, fitted));
    fmt::print("| {} | {} | {:.2f} | {:+.1f} % | {:+.1f} % | {:+.1f} % |\n", graphs[i]->name(),
               with[i].ops, with[i].measured_us / 1000, built_in[i].total_error() * 100,
               with[i].total_error() * 100, without[i].total_error() * 100);
  }
  print_summary("built in", built_in);
  print_summary("fitted", with);
  print_summary("left out", without);
  fmt::print("\n| class | ops | measured ms | total | per op |\n|---|---|---|---|---|\n");
  for (const FitError& error : class_errors(graphs, name, fitted)) {
    fmt::print("| {} | {} | {:.2f} | {:+.1f} % | {:.1f} % |\n", error.name, error.ops,
               error.measured_us / 1000, error.total_error() * 100, error.op_error * 100);
  }
  if (curves) print_curves(fitted);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  std::string kind = "h200";
  bool curves = false;
  CLI::App app("How well the analytic cost model fits measured graphs.");
  app.add_option("graphs", files, "Measured graphs; the captured ones unless given");
  app.add_option("--kind", kind, "Of device, whose times were measured")->capture_default_str();
  app.add_flag("--curves", curves, "Print the fitted curves too");
  CLI11_PARSE(app, argc, argv);
  try {
    run(files.empty() ? bench::captured_graphs() : files, kind, curves);
  } catch (const Error& error) {
    fmt::print(stderr, "cost: {}\n", error.what());
    return 2;
  }
  return 0;
}
