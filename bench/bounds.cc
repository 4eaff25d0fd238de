// How near lower bounds of the step time come to the best step times known, and how fast: on four
// equal devices with little memory each (a), with much (b), and on two, one twice as slow, with
// little memory each (c); see docs/benchmarks.md.
//
//   build/bench/bounds GRAPH[=A_MS,B_MS,C_MS]... [--seconds S] [--clusters abc] [--bandwidth B]
//       [--verbose]
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/units.h"

#include "sim/simulator.h"

#include "bound/lower_bound.h"
#include "io/readers.h"

namespace {

using namespace emplace;

constexpr std::int64_t kBandwidth = 12'000'000'000;

struct Settings {
  std::string clusters = "abc";
  std::int64_t bandwidth = kBandwidth;
  double seconds = 10;
  bool verbose = false;
};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

Cluster make_cluster(char kind, Bytes single_peak, std::int64_t bandwidth) {
  ClusterSpec spec;
  spec.name = kind;
  const int devices = kind == 'c' ? 2 : 4;
  const int percent = kind == 'a' ? 40 : kind == 'b' ? 120 : 60;
  for (int i = 0; i < devices; ++i) {
    spec.devices.push_back({.name = fmt::format("gpu{}", i),
                            .kind = "h200",
                            .memory = single_peak / 100 * percent,
                            .slowdown = Decimal{kind == 'c' && i == 1 ? 16 : 8, 0}});
  }
  spec.links.push_back({.bandwidth = bandwidth, .latency = 10'000});
  return Cluster(std::move(spec));
}

Bytes single_peak(const std::shared_ptr<const Graph>& graph) {
  const auto one = std::make_shared<const Cluster>(make_cluster('b', kUnlimited / 200, kBandwidth));
  const auto problem = compile(graph, one);
  return Simulator(problem).run(Placement(graph->num_ops(), 0), {}).devices[0].peak;
}

struct Case {
  std::string path;
  std::vector<double> best;  // ms, on each cluster
};

Case parse_case(const std::string& text) {
  const std::size_t sign = text.rfind('=');
  Case result{text.substr(0, sign), {}};
  for (std::size_t at = sign; at != std::string::npos; at = text.find(',', at + 1)) {
    result.best.push_back(std::stod(text.substr(at + 1)));
  }
  return result;
}

void run(const Case& one, const Settings& settings) {
  const Model model = read_model(one.path);
  const Bytes peak = single_peak(model.graph);
  for (const char kind : settings.clusters) {
    const auto cluster =
        std::make_shared<const Cluster>(make_cluster(kind, peak, settings.bandwidth));
    const auto problem = compile(model.graph, cluster);
    const std::size_t column = static_cast<std::size_t>(kind - 'a');
    const bool known = column < one.best.size() && one.best[column] > 0;
    const Nanoseconds upper = known ? std::llround(one.best[column] * 1e6) : problem->horizon();
    const auto ms = [](Nanoseconds time) { return static_cast<double>(time) / 1e6; };
    Nanoseconds all = 0;
    for (OpId op = 0; op < problem->num_ops(); ++op) all += problem->duration(op, 0);
    const double start = cpu_seconds();
    const LowerBound first = lower_bound(*problem);
    const double first_seconds = cpu_seconds() - start;
    Budget budget;
    budget.seconds = settings.seconds;
    double last = 0;
    const LowerBound bound = improve_bound(*problem, upper, budget, [&](const LowerBound& better) {
      last = budget.elapsed_seconds();
      if (settings.verbose) {
        fmt::print("  {:>8.3f} s  {:>10.3f} ms  {}\n", last, ms(better.step), better.reason);
      }
    });
    fmt::print(
        "{:<22} {}  one device {:>9.3f}  quick {:>9.3f} ({:>6.3f} s)  bound {:>9.3f} at {:>6.2f} "
        "of "
        "{:>6.2f} s  best {:>9.3f}  gap {:>6.2f} %  {}\n",
        model.graph->name(), kind, ms(all), ms(first.step), first_seconds, ms(bound.step), last,
        budget.elapsed_seconds(), known ? ms(upper) : 0.0,
        known ? 100 * (ms(upper) / ms(bound.step) - 1) : 0.0, bound.reason);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Lower bounds of step times.");
  std::vector<std::string> cases;
  Settings settings;
  app.add_option("cases", cases, "GRAPH or GRAPH=A_MS,B_MS,C_MS, the best step times known")
      ->required();
  app.add_option("--clusters", settings.clusters, "Which of a, b and c");
  app.add_option("--bandwidth", settings.bandwidth, "Of every link, in bytes per second");
  app.add_option("--seconds", settings.seconds, "For each graph and cluster");
  app.add_flag("--verbose", settings.verbose, "Print every improvement");
  CLI11_PARSE(app, argc, argv);
  try {
    for (const std::string& text : cases) run(parse_case(text), settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
