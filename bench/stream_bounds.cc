// How near the lower bound of a stream's period comes to the best period known, and how fast.
//
//   build/bench/stream_bounds GRAPH=PERIOD_MS... [--seconds S]
#include <cmath>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/units.h"

#include "placers/stream/bound.h"

#include "io/readers.h"

namespace {

using namespace emplace;

struct Case {
  std::string path;
  Nanoseconds upper;
};

Case parse_case(const std::string& text) {
  const std::size_t sign = text.rfind('=');
  if (sign == std::string::npos) fail_option("{}: expected GRAPH=PERIOD_MS", text);
  return {text.substr(0, sign), std::llround(std::stod(text.substr(sign + 1)) * 1e6)};
}

void run(const Case& one, const std::string& cluster, Overlap overlap, double seconds,
         bool verbose) {
  const Model model = read_model(one.path);
  const auto problem =
      compile(model.graph, cluster.empty() ? model.cluster : read_cluster(cluster));
  const StreamModel stream(*problem, overlap);
  Budget budget;
  budget.seconds = seconds;
  const auto gap = [&](Nanoseconds bound) {
    return 100 * (static_cast<double>(one.upper) / static_cast<double>(bound) - 1);
  };
  double last = 0;
  const StreamBound bound = bound_stream(stream, one.upper, budget, [&](const StreamBound& better) {
    last = budget.elapsed_seconds();
    if (!verbose) return;
    fmt::print("  {:>8.2f} s  {:>12.4f} ms  gap {:>7.3f} %\n", last,
               static_cast<double>(better.period) / 1e6, gap(better.period));
  });
  fmt::print(
      "{:<40} {:>6} items {:>12.4f} ms of {:>12.4f}  gap {:>7.3f} %  at {:>6.2f} of {:>6.2f} s  "
      "{}\n",
      model.graph->name(), stream.num_items(), static_cast<double>(bound.period) / 1e6,
      static_cast<double>(one.upper) / 1e6, gap(bound.period), last, budget.elapsed_seconds(),
      bound.reason);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Lower bounds of streams, against the best periods known.");
  std::vector<std::string> cases;
  std::string cluster;
  double seconds = 60;
  bool verbose = false;
  bool full = false;
  app.add_option("cases", cases, "GRAPH=PERIOD_MS, each with the best period known")->required();
  app.add_option("--cluster", cluster, "Cluster file or preset, unless the graph brings its own");
  app.add_option("--seconds", seconds, "For each graph");
  app.add_flag("--full", full, "Communication overlaps with computation");
  app.add_flag("--verbose", verbose, "Print every improvement");
  CLI11_PARSE(app, argc, argv);
  try {
    for (const std::string& text : cases) {
      run(parse_case(text), cluster, full ? Overlap::kFull : Overlap::kNone, seconds, verbose);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
