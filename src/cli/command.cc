#include "cli/command.h"

#include "base/error.h"
#include "base/options.h"
#include "base/units.h"

#include "io/readers.h"

namespace emplace::cli {

void ProblemArguments::add_to(CLI::App& command) {
  command
      .add_option("model", model,
                  "Model file: graph JSON, ONNX, dnn-partitioning or PipeDream, also gzipped")
      ->required()
      ->type_name("MODEL");
  command
      .add_option("-c,--cluster", cluster,
                  "Cluster file, or a preset such as 4xp100 (see: emplace cluster list)")
      ->type_name("CLUSTER");
  command
      .add_option("--cost", cost,
                  "Op times: measured, analytic, or auto (measured where there is a time)")
      ->capture_default_str()
      ->type_name("MODE");
  command.add_option("--dim", dims, "Value of a symbolic ONNX dimension, e.g. --dim batch=32")
      ->type_name("NAME=N");
}

std::shared_ptr<const Problem> ProblemArguments::load() const {
  ReadOptions options;
  for (const std::string& dim : dims) {
    const std::size_t equals = dim.find('=');
    if (equals == std::string::npos || equals == 0) fail_option("--dim {}: expected NAME=N", dim);
    constexpr std::int64_t kLargest = std::int64_t{1} << 40;
    options.dims[dim.substr(0, equals)] =
        read_integer("--dim " + dim.substr(0, equals), dim.substr(equals + 1), 1, kLargest);
  }
  const auto mode = parse_cost_mode(cost);
  if (!mode) fail_option("--cost {}: expected measured, analytic or auto", cost);
  const Model read = read_model(model, options);
  if (cluster.empty() && read.cluster == nullptr) {
    fail_option("--cluster is missing: expected a cluster file or a preset such as 4xp100");
  }
  const auto machines = cluster.empty() ? read.cluster : read_cluster(cluster);
  return with_context(model, [&] { return compile(read.graph, machines, *mode); });
}

void ObjectiveArguments::add_to(CLI::App& command) {
  command
      .add_option("--objective", objective,
                  "latency (step time) or throughput (period of a pipelined stream)")
      ->check(CLI::IsMember({"latency", "throughput"}))
      ->capture_default_str();
  command
      .add_option("--overlap", overlap,
                  "With throughput: full, or none (devices pay for communication)")
      ->check(CLI::IsMember({"full", "none"}))
      ->capture_default_str();
}

void BudgetArguments::add_to(CLI::App& command) {
  command.add_option("--time", time, "Stop searching after this long, e.g. 30s or 5m")
      ->type_name("DURATION");
  command
      .add_option("--evaluations", evaluations, "Stop searching after this many simulated steps")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
}

Budget BudgetArguments::make(const Session& session) const {
  Budget budget;
  if (!time.empty()) {
    budget.seconds = parse_seconds(time);
    if (!budget.seconds) fail_option("--time {}: expected a duration such as 30s, 5m or 1h", time);
  }
  budget.evaluations = evaluations;
  budget.cancelled = &session.cancelled;
  return budget;
}

std::vector<std::string> split_specs(const std::string& text) {
  std::vector<std::string> specs{""};
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      specs.emplace_back();
    } else {
      specs.back() += c;
    }
  }
  return specs;
}

}  // namespace emplace::cli
