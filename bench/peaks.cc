// How far peaks of memory are from predicted ones, whatever the machine's load: for each model and
// number of devices a profile, then some placements (support/candidates.h), each predicted and
// executed on devices that share a core. Prints the table of docs/results/execution.md.
//
//   build/bench/peaks [MODEL...] [--devices 1,2,4] [--seconds 1] [--rows] [--fixed-order]
//                     [--wait SECONDS]
//
// A ratio is measured by predicted, of a device that has at least a twentieth of the model's peak
// on one device; nothing is in place. "oracle" is predicted from the op times of the very run, "own
// events" is what the rules of memory make of the times at which ops and transfers of the run began
// and ended: it tells rules that are wrong from events that come in another order, as they do on
// devices that share a core. With --fixed-order each device takes its ops in exactly the simulated
// sequence. With --rows every placement is shown. With --wait a second table follows, of steps in
// which nothing is computed: ops hold their results, and what the profile says that they hold
// beside, and wait. Their times and the links' are drawn out until the step on one device takes so
// many seconds, so that the order of events is the simulated one.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"

#include "sim/simulator.h"

#include "cli/blas.h"
#include "exec/clock.h"
#include "exec/machine.h"
#include "exec/program.h"
#include "report/table.h"
#include "run/execution.h"
#include "run/problem_request.h"
#include "run/profile.h"
#include "support/candidates.h"
#include "support/errors.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

const std::vector<std::string> kModels = {
    "zoo:resnet-50:batch=4,image=96",
    "zoo:vgg-16:batch=2",
    "zoo:inception-v3:batch=4,image=139",
    "zoo:gnmt-2:batch=16,sequence=6,hidden=256,vocabulary=2000",
    "zoo:bert-base:batch=2,sequence=64,layers=3",
    "zoo:transformer-base:batch=2,layers=2",
};

struct Settings {
  std::vector<std::string> models = kModels;
  std::vector<int> devices = {1, 2, 4};
  double seconds = 1;
  double wait = 0;  // 0: no such table
  bool rows = false;
  bool fixed_order = false;
};

// Devices on one core, joined by links that are slow enough not to depend on it.
std::shared_ptr<const Cluster> shared_core(int count) {
  ClusterSpec spec;
  spec.name = fmt::format("{} on one core", count);
  for (int i = 0; i < count; ++i) {
    Device device;
    device.name = fmt::format("cpu{}", i);
    device.kind = "cpu";
    device.memory = kUnlimited;
    device.runs_on = "cores 0";
    spec.devices.push_back(device);
  }
  LinkRule rule;
  rule.bandwidth = 1'000'000'000;
  rule.latency = 50'000;
  rule.channel = "out";
  rule.throttled = true;
  spec.links.push_back(rule);
  return std::make_shared<const Cluster>(spec);
}

Profile profile_of(const std::shared_ptr<const Graph>& graph,
                   const std::shared_ptr<const Cluster>& cluster) {
  const ProfileSettings settings{
      .phases = 1, .proposals = 0, .measure = {.steps = 2, .warm_up = 1}};
  const Profiler profiler(graph, cluster, settings);
  Laboratory laboratory(cluster);
  return profiler.combine({profiler.measure(laboratory, 0)});
}

double ratio(Bytes measured, Bytes predicted) {
  return static_cast<double>(measured) / static_cast<double>(predicted);
}

struct Ratios {
  std::vector<double> all = {};

  void add(double value) { all.push_back(value); }
  std::string text() {
    if (all.empty()) return "-";
    std::sort(all.begin(), all.end());
    const auto near = std::count_if(all.begin(), all.end(),
                                    [](double value) { return std::abs(value - 1) <= 0.1; });
    return fmt::format("{:.3f} to {:.3f}, median {:.3f}; {} of {}", all.front(), all.back(),
                       all[all.size() / 2], near, all.size());
  }
};

// Of one placement, by device.
std::string join(const std::vector<double>& ratios) {
  std::string text;
  for (const double value : ratios) text += fmt::format("{}{:.3f}", text.empty() ? "" : " ", value);
  return text;
}

// Peaks by the rules of memory (docs/simulator.md, nothing in place) from when ops and transfers of
// an executed step began and ended. Inputs stay, as they do there.
class PeaksOfEvents {
 public:
  PeaksOfEvents(const Problem& problem, const Placement& placement, const Timeline& executed)
      : graph_(problem.graph()),
        placement_(placement),
        executed_(executed),
        changes_(problem.num_devices()) {}

  std::vector<Bytes> find() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) add_op(op);
    for (const Transfer& transfer : executed_.transfers) {
      const Nanoseconds end = last_use(transfer.tensor, transfer.to, transfer.finish);
      add(transfer.to, transfer.start, end, graph_.memory_bytes(transfer.tensor));
    }
    std::vector<Bytes> peaks;
    for (auto& changes : changes_) {
      std::sort(changes.begin(), changes.end());  // of one time, releases first
      Bytes now = 0;
      Bytes peak = 0;
      for (const auto& [time, bytes] : changes) peak = std::max(peak, now += bytes);
      peaks.push_back(peak);
    }
    return peaks;
  }

 private:
  static constexpr Nanoseconds kAlways = std::numeric_limits<Nanoseconds>::max();

  void add(DeviceId device, Nanoseconds begin, Nanoseconds end, Bytes bytes) {
    if (end <= begin) return;
    changes_[device].emplace_back(begin, bytes);
    changes_[device].emplace_back(end, -bytes);
  }

  void add_op(OpId op) {
    const DeviceId device = placement_[op];
    const auto& [start, finish] = executed_.ops[op];
    add(device, 0, kAlways, graph_.persistent_bytes(op));
    add(device, start, finish, graph_.temp_bytes(op));
    for (const TensorId tensor : graph_.outputs(op)) {
      if (graph_.is_view(op)) continue;
      const bool stays = graph_.is_source(op);
      add(device, stays ? 0 : start, stays ? kAlways : last_use(tensor, device, finish),
          graph_.memory_bytes(tensor));
    }
  }

  // By ops there, by transfers from there, and of whatever sees it there.
  Nanoseconds last_use(TensorId tensor, DeviceId device, Nanoseconds end) const {
    for (const OpId reader : graph_.consumers(tensor)) {
      if (placement_[reader] != device) continue;
      end = std::max(end, executed_.ops[reader].finish);
      if (!graph_.is_view(reader) || graph_.inputs(reader)[0] != tensor) continue;
      for (const TensorId seen : graph_.outputs(reader)) end = last_use(seen, device, end);
    }
    for (const Transfer& transfer : executed_.transfers) {
      const bool sent = transfer.tensor == tensor && transfer.from == device;
      if (sent) end = std::max(end, transfer.finish);
    }
    return end;
  }

  const Graph& graph_;
  const Placement& placement_;
  const Timeline& executed_;
  std::vector<std::vector<std::pair<Nanoseconds, Bytes>>> changes_;  // by device
};

// Results of a view are parts of what it views, or one number of it many times.
torch::Tensor seen(const torch::Tensor& of, const exec::Integers& shape) {
  const std::int64_t count = c10::multiply_integers(shape);
  const auto there = static_cast<std::int64_t>(of.storage().nbytes() / of.element_size());
  exec::Integers strides(shape.size(), 0);
  if (of.storage_offset() + count <= there) {
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  }
  return torch::as_strided(of, shape, strides, of.storage_offset());
}

exec::OpCompiler waiting_ops(const std::shared_ptr<const Problem>& problem,
                             const Placement& placement) {
  return [problem, placement](const Graph& graph, OpId op, const exec::OpTarget& target) {
    std::vector<exec::Integers> shapes;
    std::vector<torch::ScalarType> types;
    for (const TensorId tensor : graph.outputs(op)) {
      const auto shape = graph.shape(tensor);
      shapes.emplace_back(shape.begin(), shape.end());
      types.push_back(exec::scalar_type(graph.dtype(tensor), target));
    }
    const Nanoseconds length = problem->duration(op, placement[op]);
    const Bytes beside = graph.temp_bytes(op);
    const bool view = graph.is_view(op);
    const auto run = [=](exec::OpStep& step) {
      const Nanoseconds start = exec::now();
      const torch::Tensor temporary = torch::empty({beside}, torch::kByte);
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        step.outputs[i] =
            view ? seen(step.inputs[0], shapes[i]) : torch::empty(shapes[i], types[i]);
      }
      exec::wait_until(start + length);
    };
    return exec::CompiledOp{.run = run, .native = true};
  };
}

torch::Tensor empty_source(const Graph& graph, OpId op, std::size_t output) {
  const auto shape = graph.shape(graph.outputs(op)[output]);
  return torch::empty(exec::Integers(shape.begin(), shape.end()));
}

// Everything takes that many times as long. Sums are not in place: they would take no time.
std::shared_ptr<const Problem> drawn_out(const Problem& problem, std::int64_t times) {
  ClusterSpec spec = problem.cluster().spec();
  for (Device& device : spec.devices) {
    device.slowdown = Decimal{times, 0};
    device.gap = 0;
  }
  for (LinkRule& rule : spec.links) {
    rule.latency *= times;
    rule.bandwidth = std::max<std::int64_t>(1, rule.bandwidth / times);
  }
  CompileOptions options = problem.compile_options();
  options.in_place = InPlace::kNone;
  return compile(std::make_shared<const Graph>(problem.graph()),
                 std::make_shared<const Cluster>(spec), options);
}

struct WaitedStep {
  Nanoseconds time = 0;
  std::vector<exec::MemoryRecord> memory = {};
};

WaitedStep wait_a_step(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                       const Schedule& schedule, bool fixed_order) {
  const auto graph = std::shared_ptr<const Graph>(problem, &problem->graph());
  exec::Machine machine(std::shared_ptr<const Cluster>(problem, &problem->cluster()), {});
  const exec::ProgramOptions options{.order = order_of(*problem, placement, schedule, fixed_order),
                                     .in_place = InPlace::kNone};
  const auto program = std::make_shared<exec::StepProgram>(
      machine, graph, placement, options, empty_source, waiting_ops(problem, placement));
  const exec::StepRecord record = program->step();
  if (record.failure) fail(ErrorKind::kSystem, "{}", record.failure->text);
  return {record.step, program->memory()};
}

void try_waiting(const std::string& model, const Problem& problem,
                 const std::vector<Candidate>& tried, const Settings& settings, Table& table) {
  const auto alone = Simulator(std::shared_ptr<const Problem>(&problem, [](const Problem*) {
                     })).run(Placement(problem.num_ops(), 0), {});
  const auto times = static_cast<std::int64_t>(settings.wait * 1e9) / alone.step + 1;
  const auto slow = drawn_out(problem, times);
  Ratios ratios;
  std::vector<double> predicted_steps;
  std::vector<double> steps;
  for (const Candidate& candidate : tried) {
    const Timeline predicted = Simulator(slow).run(candidate.placement, candidate.schedule);
    const auto [time, memory] =
        wait_a_step(slow, candidate.placement, candidate.schedule, settings.fixed_order);
    predicted_steps.push_back(static_cast<double>(predicted.step));
    steps.push_back(static_cast<double>(time));
    std::vector<double> own;
    for (DeviceId id = 0; id < problem.num_devices(); ++id) {
      if (predicted.devices[id].peak < alone.devices[0].peak / 20) continue;
      own.push_back(ratio(memory[id].peak, predicted.devices[id].peak));
      ratios.add(own.back());
    }
    if (settings.rows) {
      fmt::print("{:10} waiting {}; step {:.2f} s, {:.4f} predicted\n", candidate.name, join(own),
                 steps.back() / 1e9, predicted_steps.back() / steps.back());
      std::fflush(stdout);
    }
  }
  table.add({model.substr(4), fmt::format("{}", problem.num_devices()), ratios.text(),
             fmt::format("{}", steps.size()), text(errors_of(predicted_steps, steps))});
}

void try_model(const std::string& model, int devices, const Settings& settings, Table& table,
               Table& waiting) {
  const auto cluster = shared_core(devices);
  const auto loaded = load_problem({.model = model, .cluster = "2xp100"});
  const auto graph = std::shared_ptr<const Graph>(loaded, &loaded->graph());
  const Profile profile = profile_of(graph, cluster);
  const auto problem = compile(profile.graph, std::make_shared<const Cluster>(profile.cluster),
                               {.cost = CostMode::kMeasured, .in_place = InPlace::kNone});
  const Bytes alone = Simulator(problem).run(Placement(problem->num_ops(), 0), {}).devices[0].peak;
  std::optional<Laboratory> laboratory(
      std::in_place, std::shared_ptr<const Cluster>(problem, &problem->cluster()));
  Ratios predicted;
  Ratios oracle;
  Ratios by_rules;
  const std::vector<Candidate> tried =
      devices == 1 ? std::vector<Candidate>{{"single", Placement(problem->num_ops(), 0)}}
                   : candidates(problem, settings.seconds);
  for (const Candidate& candidate : tried) {
    const Execution run = execute(*laboratory, problem, candidate.placement, candidate.schedule,
                                  {.steps = 1, .warm_up = 0, .fixed_order = settings.fixed_order});
    if (run.failed()) fail(ErrorKind::kSystem, "{}", run.measurement.failure->text);
    const Timeline with_own = simulate_with_times(problem, candidate.placement, candidate.schedule,
                                                  run.measurement.op_times);
    std::vector<double> ratios;
    std::vector<double> own;
    std::vector<double> from_events;
    const auto events = PeaksOfEvents(*problem, candidate.placement, run.measured).find();
    for (DeviceId id = 0; id < problem->num_devices(); ++id) {
      if (run.predicted.devices[id].peak < alone / 20) continue;
      const Bytes measured = run.measurement.memory[id].peak;
      from_events.push_back(ratio(measured, events[id]));
      by_rules.add(from_events.back());
      ratios.push_back(ratio(measured, run.predicted.devices[id].peak));
      own.push_back(ratio(measured, with_own.devices[id].peak));
      predicted.add(ratios.back());
      oracle.add(own.back());
    }
    if (settings.rows) {
      fmt::print("{:10} {}; oracle {}; own events {}\n", candidate.name, join(ratios), join(own),
                 join(from_events));
      std::fflush(stdout);
    }
  }
  table.add({model.substr(4), fmt::format("{}", devices), predicted.text(), oracle.text(),
             by_rules.text()});
  laboratory.reset();  // one machine at a time
  if (settings.wait > 0) try_waiting(model, *problem, tried, settings, waiting);
}

}  // namespace

int main(int argc, char** argv) {
  cli::prepare_blas();
  Settings settings;
  CLI::App app("How far peaks of memory are from predicted ones.");
  app.add_option("models", settings.models, "Models of the zoo");
  app.add_option("--devices", settings.devices, "How many")->delimiter(',');
  app.add_option("--seconds", settings.seconds, "For each search");
  app.add_option("--wait", settings.wait, "Also steps in which ops wait: seconds on one device");
  app.add_flag("--fixed-order", settings.fixed_order, "Ops in the simulated sequence");
  app.add_flag("--rows", settings.rows, "Every placement");
  bool list = false;
  app.add_flag("--list", list, "Print the models and end");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const std::string& model : settings.models) fmt::print("{}\n", model);
    return 0;
  }
  Table table({{"model"},
               {"devices"},
               {"measured / predicted; within 10 %"},
               {"measured / oracle"},
               {"measured / own events"}});
  Table waiting({{"model"},
                 {"devices"},
                 {"waiting: measured / predicted; within 10 %"},
                 {"placements"},
                 {"steps: median % / worst % / Spearman"}});
  try {
    for (const std::string& model : settings.models) {
      for (const int devices : settings.devices) {
        fmt::print("{} on {}\n", model, devices);
        std::fflush(stdout);
        try_model(model, devices, settings, table, waiting);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "peaks: {}\n", error.what());
    return 2;
  }
  fmt::print("{}", table.to_string());
  if (settings.wait > 0) fmt::print("\n{}", waiting.to_string());
  return 0;
}
