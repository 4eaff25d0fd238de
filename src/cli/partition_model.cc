#include "cli/partition_model.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"

#include "placer/run.h"

#include "placers/all.h"

#include "tensor/decompose.h"
#include "tensor/evaluate.h"
#include "tensor/methods/all.h"
#include "tensor/topology.h"

#include "cli/progress.h"
#include "cli/prose.h"
#include "cli/report.h"
#include "cli/table.h"
#include "io/file.h"
#include "io/writers.h"

namespace emplace::cli {
namespace {

// How long the search for a placement of whole ops may take, of the time for everything.
constexpr double kPlacementShare = 0.25;
constexpr double kLongestPlacement = 10;

// One way to run the model.
struct Row {
  std::string name;
  Nanoseconds step = 0;
  std::vector<Bytes> peaks;  // by device
  Bytes moved = 0;
  bool fits = false;

  Bytes most() const { return *std::max_element(peaks.begin(), peaks.end()); }
};

class PartitionRun {
 public:
  PartitionRun(const PartitionArguments& arguments, Session& session)
      : arguments_(arguments),
        session_(session),
        loaded_(arguments.problem.load()),
        whole_(loaded_.problem),
        graph_(std::make_shared<const Graph>(decompose(whole_->graph()))),
        cluster_(std::make_shared<const Cluster>(whole_->cluster())),
        problem_(compile(graph_, cluster_, loaded_.options.cost)),
        on_(workers_on(*problem_, arguments.workers)),
        input_(*graph_) {}

  void run() {
    if (on_.workers.count() < 2) {
      fail_option("the cluster '{}' has one device; expected two or more to divide tensors among",
                  cluster_->name());
    }
    const MethodSpec method = MethodSpec::parse(arguments_.method);
    all_partition_methods().make(method);  // to refuse what there is not before anything is run
    {
      const Progress progress([&] { return fmt::format("{}", stage_.load()); });
      find_alternatives();
      stage_ = "searching for a partition";
      plan_ = find_plan(method);
      outcome_ = evaluate_plan(input_, plan_, cluster_, on_.devices, loaded_.options.cost);
      stage_ = "comparing";
      for (const MethodInfo* other : all_partition_methods().list()) {
        const bool baseline = other->key != "search" && other->key != method.key;
        if (!baseline || session_.cancelled) continue;
        baselines_.push_back(row_of(other->key, find_plan({other->key})));
      }
    }
    chosen_ = row_of(method.to_string(), outcome_);
    write();
    if (!chosen_.fits) session_.exit_code = kExitNothingFits;
    if (session_.cancelled) fmt::print(stderr, "note: interrupted; this is the best so far\n");
    fmt::print("{}", arguments_.json ? to_json() : to_text());
  }

 private:
  Plan find_plan(const MethodSpec& method) const {
    PartitionContext context(input_, problem_, on_, loaded_.options.cost);
    Budget budget;
    budget.seconds = arguments_.seconds;
    budget.cancelled = &session_.cancelled;
    return all_partition_methods().make(method)->find(context, budget, Rng(1));
  }

  // The whole model on its fastest device, and placed op by op.
  void find_alternatives() {
    stage_ = "simulating one device";
    const auto simulator = std::make_shared<const Simulator>(whole_);
    std::optional<Row> best;
    for (const DeviceId device : on_.devices) {
      if (!allowed_everywhere(device)) continue;
      Row row = simulate(simulator, fmt::format("one device ({})", cluster_->device(device).name),
                         Placement(whole_->num_ops(), device), {});
      const bool better = !best || (row.fits != best->fits ? row.fits : row.step < best->step);
      if (better) best = std::move(row);
      if (cluster_->num_devices() > 1 && is_uniform()) break;
    }
    one_ = best;
    stage_ = "placing whole ops";
    PlaceContext context(simulator);
    Budget budget;
    budget.seconds = std::min(kLongestPlacement, arguments_.seconds * kPlacementShare);
    budget.cancelled = &session_.cancelled;
    budget.threads = hardware_threads();
    const RunResult placed =
        run_placer(all_placers(), context, {.placer = MethodSpec::parse("auto")}, budget);
    placed_ =
        simulate(simulator, "placement (auto)", placed.result.placement, placed.result.schedule);
  }

  bool allowed_everywhere(DeviceId device) const {
    for (GroupId group = 0; group < whole_->num_groups(); ++group) {
      if (!whole_->allowed(group, device)) return false;
    }
    return true;
  }

  bool is_uniform() const {
    const Device& first = cluster_->device(on_.devices[0]);
    return std::all_of(on_.devices.begin(), on_.devices.end(), [&](DeviceId id) {
      const Device& device = cluster_->device(id);
      return device.kind == first.kind && device.memory == first.memory &&
             device.slowdown == first.slowdown;
    });
  }

  static Row simulate(const std::shared_ptr<const Simulator>& simulator, std::string name,
                      const Placement& placement, const Schedule& schedule) {
    const Timeline timeline = simulator->run(placement, schedule);
    Row row{.name = std::move(name), .step = timeline.step, .peaks = {}};
    row.fits = timeline.fits();
    for (const DeviceUse& use : timeline.devices) row.peaks.push_back(use.peak);
    row.moved = timeline.transfer_bytes;
    return row;
  }

  static Row row_of(std::string name, const PlanOutcome& outcome) {
    return {.name = std::move(name),
            .step = outcome.value.step,
            .peaks = outcome.peaks,
            .moved = outcome.moved,
            .fits = outcome.value.fits()};
  }
  Row row_of(std::string name, const Plan& plan) const {
    return row_of(std::move(name),
                  evaluate_plan(input_, plan, cluster_, on_.devices, loaded_.options.cost));
  }

  void write() const {
    std::vector<std::string> names;
    for (const DeviceId device : on_.devices) names.push_back(cluster_->device(device).name);
    if (!arguments_.output.empty()) {
      write_file(arguments_.output, write_partition_json(*graph_, input_.descriptions, plan_,
                                                         {.cluster = cluster_->name(),
                                                          .devices = names,
                                                          .step = outcome_.value.step,
                                                          .fits = outcome_.value.fits(),
                                                          .moved = outcome_.moved}));
    }
    if (!arguments_.graph.empty()) {
      write_file(arguments_.graph, write_graph_json(outcome_.problem->graph()));
    }
    if (!arguments_.placement.empty()) {
      PlacementFile file;
      file.placement = outcome_.placement;
      file.placer = "partition";
      write_file(arguments_.placement, write_placement_json(*outcome_.problem, file));
    }
    if (!arguments_.trace.empty()) {
      const Simulator simulator(outcome_.problem);
      write_file(arguments_.trace, write_trace_json(*outcome_.problem, outcome_.placement,
                                                    simulator.run(outcome_.placement, {})));
    }
  }

  // What a user should do, with the figures.
  std::string verdict() const {
    const auto time = [](const Row& row) { return format_time(row.step); };
    if (one_ && one_->fits && (!chosen_.fits || one_->step <= chosen_.step)) {
      return fmt::format(
          "Partitioning does not pay: the step fits {} alone and takes {} there; in parts on {} "
          "devices it takes {}.{}",
          one_->name.substr(12, one_->name.size() - 13), time(*one_), on_.workers.count(),
          time(chosen_),
          placed_.fits && placed_.step < one_->step
              ? fmt::format(" Placing whole ops does: {} with `emplace place`.", time(placed_))
              : "");
    }
    if (placed_.fits && (!chosen_.fits || placed_.step <= chosen_.step)) {
      return fmt::format("Placing whole ops is better: {} with `emplace place`, {} in parts.",
                         time(placed_), chosen_.fits ? time(chosen_) : "does not fit");
    }
    if (!chosen_.fits) return shortfall();
    if (one_ && one_->fits) {
      return fmt::format(
          "Partitioning pays: {} in parts on {} devices, {} on one, {} placed whole.",
          time(chosen_), on_.workers.count(), time(*one_), time(placed_));
    }
    return fmt::format("The step does not fit one device; in parts it takes {}, placed whole {}.",
                       time(chosen_), placed_.fits ? time(placed_) : "it does not fit");
  }

  std::string shortfall() const {
    std::vector<std::string> short_of;
    for (DeviceId device = 0; device < chosen_.peaks.size(); ++device) {
      const Bytes over = chosen_.peaks[device] - cluster_->device(device).memory;
      if (over > 0) {
        short_of.push_back(
            fmt::format("{} by {}", cluster_->device(device).name, format_bytes(over)));
      }
    }
    return fmt::format("Nothing fits: short of memory are {}.", join_words(short_of));
  }

  std::string to_text() const {
    std::string text = describe_problem(*whole_);
    text +=
        fmt::format("\ndivided by {} among {} workers ({}), in {} kinds of ops and {} of tensors\n",
                    arguments_.method, on_.workers.count(), fmt::join(on_.workers.factors(), " x "),
                    input_.classes.num_ops, input_.classes.num_tensors);
    Table table({{"how"},
                 {"step", Table::Align::kRight},
                 {"sent", Table::Align::kRight},
                 {"memory of the fullest", Table::Align::kRight},
                 {"fits"}});
    const auto add = [&](const Row& row) {
      table.add({row.name, format_time(row.step), format_bytes(row.moved), format_bytes(row.most()),
                 row.fits ? "yes" : "no"});
    };
    add(chosen_);
    for (const Row& row : baselines_) add(row);
    if (one_) add(*one_);
    add(placed_);
    text += table.to_string() + "\n";
    Table devices({{"device"}, {"memory", Table::Align::kRight}, {"of", Table::Align::kRight}});
    for (const DeviceId device : on_.devices) {
      const Bytes capacity = cluster_->device(device).memory;
      devices.add({cluster_->device(device).name, format_bytes(chosen_.peaks[device]),
                   format_bytes(capacity)});
    }
    text += devices.to_string() + "\n" + wrapped(verdict());
    text += undescribed();
    for (const std::string& path :
         {arguments_.output, arguments_.graph, arguments_.placement, arguments_.trace}) {
      if (!path.empty()) text += fmt::format("\nwrote {}", path);
    }
    return text + "\n";
  }

  // Operators that everybody does whole for want of a description.
  std::string undescribed() const {
    std::vector<std::string> types;
    for (OpId op = 0; op < graph_->num_ops(); ++op) {
      if (graph_->is_source(op) || input_.descriptions[op] != nullptr) continue;
      const std::string type(graph_->type(op));
      if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
    }
    if (types.empty()) return {};
    return wrapped(fmt::format(
        "Not divided, since they have no description or their shapes are not known (every worker "
        "computes them whole): {}.",
        join_words(types)));
  }

  nlohmann::ordered_json json_of(const Row& row) const {
    nlohmann::ordered_json json;
    json["how"] = row.name;
    json["step_ns"] = row.step;
    json["fits"] = row.fits;
    json["sent_bytes"] = row.moved;
    for (DeviceId device = 0; device < row.peaks.size(); ++device) {
      json["devices"].push_back({{"name", cluster_->device(device).name},
                                 {"peak_bytes", row.peaks[device]},
                                 {"capacity_bytes", cluster_->device(device).memory}});
    }
    return json;
  }

  std::string to_json() const {
    nlohmann::ordered_json json = json_of(chosen_);
    json["method"] = arguments_.method;
    json["workers"] = on_.workers.count();
    json["factors"] = on_.workers.factors();
    for (const Row& row : baselines_) json["compared"].push_back(json_of(row));
    if (one_) json["one_device"] = json_of(*one_);
    json["placement"] = json_of(placed_);
    json["verdict"] = verdict();
    return json.dump(1) + "\n";
  }

  const PartitionArguments& arguments_;
  Session& session_;
  LoadedProblem loaded_;
  std::shared_ptr<const Problem> whole_;
  std::shared_ptr<const Graph> graph_;  // decomposed
  std::shared_ptr<const Cluster> cluster_;
  std::shared_ptr<const Problem> problem_;
  WorkerDevices on_;
  PartitionInput input_;
  std::atomic<const char*> stage_{"reading"};
  Plan plan_;
  PlanOutcome outcome_;
  Row chosen_;
  std::vector<Row> baselines_;
  std::optional<Row> one_;
  Row placed_;
};

}  // namespace

void partition_model(const PartitionArguments& arguments, Session& session) {
  if (!arguments.problem.pins.empty() || !arguments.problem.forbidden.empty()) {
    fail_option("--pin and --forbid are for whole ops; a partition gives every device a part");
  }
  if (arguments.problem.fuse) {
    fail_option("--fuse is for whole ops; partitions are found for the ops as they are");
  }
  for (const std::string& path :
       {arguments.output, arguments.graph, arguments.placement, arguments.trace}) {
    require_folder(path);
  }
  PartitionRun(arguments, session).run();
}

}  // namespace emplace::cli
