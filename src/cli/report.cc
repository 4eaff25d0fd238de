#include "cli/report.h"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/units.h"

#include "cli/explanation.h"
#include "cli/table.h"
#include "io/file.h"
#include "io/writers.h"

namespace emplace::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

constexpr int kBarWidth = 12;

double ratio(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

std::string percent(double share) {
  return fmt::format("{:.0f} %", share * 100);
}

std::string device_table(const Outcome& outcome) {
  const Problem& problem = outcome.problem();
  std::vector<std::int64_t> ops(problem.num_devices(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    if (problem.duration(op, outcome.placement[op]) > 0) ++ops[outcome.placement[op]];
  }
  const Nanoseconds whole = outcome.time();
  Table table({{"device"},
               {"ops", Align::kRight},
               {"busy", Align::kRight},
               {""},
               {"", Align::kRight},
               {"peak memory", Align::kRight},
               {"of", Align::kRight},
               {""}});
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    const Device& device = problem.cluster().device(id);
    const Nanoseconds busy = outcome.throughput ? outcome.throughput->device_loads[id]
                                                : outcome.timeline.devices[id].busy;
    const Bytes used = outcome.used(id);
    const double share = device.memory == kUnlimited ? 0 : ratio(used, device.memory);
    table.add({device.name, format_count(ops[id]), format_time(busy),
               bar(ratio(busy, whole), kBarWidth), percent(ratio(busy, whole)), format_bytes(used),
               format_bytes(device.memory),
               used > device.memory ? "TOO SMALL by " + format_bytes(used - device.memory)
                                    : bar(share, kBarWidth)});
  }
  return table.to_string();
}

std::string channel_table(const Outcome& outcome) {
  constexpr std::size_t kShown = 4;
  const Timeline& timeline = outcome.timeline;
  std::vector<ChannelId> busiest(timeline.channels.size());
  std::iota(busiest.begin(), busiest.end(), ChannelId{0});
  std::stable_sort(busiest.begin(), busiest.end(), [&](ChannelId a, ChannelId b) {
    return timeline.channels[a].busy > timeline.channels[b].busy;
  });
  std::erase_if(busiest, [&](ChannelId id) { return timeline.channels[id].transfers == 0; });
  if (busiest.empty()) return " no transfers between devices\n";
  Table table({{"channel"},
               {"transfers", Align::kRight},
               {"bytes", Align::kRight},
               {"busy", Align::kRight},
               {""},
               {"", Align::kRight}});
  const Nanoseconds whole = outcome.time();
  for (std::size_t i = 0; i < std::min(kShown, busiest.size()); ++i) {
    const ChannelUse& use = timeline.channels[busiest[i]];
    table.add({outcome.problem().cluster().channel_name(busiest[i]), format_count(use.transfers),
               format_bytes(use.bytes), format_time(use.busy),
               bar(ratio(use.busy, whole), kBarWidth), percent(ratio(use.busy, whole))});
  }
  std::string text = table.to_string();
  if (busiest.size() > kShown)
    text += fmt::format(" and {} more channels\n", busiest.size() - kShown);
  return text;
}

std::string describe_costs(const Problem& problem) {
  const CostOrigin measured = problem.cost_origin(kMeasuredCosts);
  if (problem.cost_origin(kAnalyticCosts).ops == 0) return "op times all measured";
  if (measured.ops == 0)
    return "op times estimated by the analytic model (none measured for these devices)";
  return fmt::format("op times {:.1f} % measured, the rest estimated by the analytic model",
                     100 * measured.share);
}

}  // namespace

bool Outcome::fits() const {
  for (DeviceId device = 0; device < problem().num_devices(); ++device) {
    if (used(device) > problem().cluster().device(device).memory) return false;
  }
  return true;
}

double Outcome::ratio_to_bound() const {
  if (time() == bound.step) return 1;
  return static_cast<double>(time()) / static_cast<double>(std::max<Nanoseconds>(1, bound.step));
}

Bytes Outcome::used(DeviceId device) const {
  return throughput ? throughput->memory[device] : timeline.devices[device].peak;
}

Assessor::Assessor(std::shared_ptr<const Simulator> simulator, const ObjectiveArguments& objective,
                   const LowerBound& proven)
    : simulator_(std::move(simulator)), objective_(objective) {
  const Problem& problem = simulator_->problem();
  if (objective_.throughput()) {
    bound_of_all_ = bound_of_fitting_ = period_lower_bound(problem);
  } else {
    bound_of_all_ = lower_bound(problem, false);
    bound_of_fitting_ = lower_bound(problem, true);
  }
  if (proven.step > bound_of_fitting_.step) bound_of_fitting_ = proven;
}

Outcome Assessor::assess(Placement placement, Schedule schedule) const {
  Outcome outcome{simulator_, std::move(placement), std::move(schedule), {}, {}};
  outcome.timeline = simulator_->run(outcome.placement, outcome.schedule);
  if (objective_.throughput()) {
    outcome.throughput =
        throughput(outcome.problem(), outcome.placement, objective_.overlap_kind());
  }
  outcome.bound = outcome.fits() ? bound_of_fitting_ : bound_of_all_;
  EMPLACE_CHECK(outcome.bound.step <= outcome.time());
  return outcome;
}

std::string to_json(const Outcome& outcome, const RunResult* run, const Explanation* explanation) {
  const Cluster& cluster = outcome.problem().cluster();
  Json json;
  json["step_ns"] = outcome.timeline.step;
  json["fits"] = outcome.fits();
  json["lower_bound_ns"] = outcome.bound.step;
  json["lower_bound_reason"] = outcome.bound.reason;
  json["optimal"] = outcome.optimal();
  json["gap"] = outcome.fits() ? Json(outcome.ratio_to_bound() - 1) : Json();
  if (outcome.throughput) json["period_ns"] = outcome.throughput->period;
  json["devices"] = Json::array();
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    Json device{{"name", cluster.device(id).name},
                {"busy_ns", outcome.timeline.devices[id].busy},
                {"peak_bytes", outcome.used(id)},
                {"capacity_bytes", cluster.device(id).memory}};
    if (cluster.device(id).memory == kUnlimited) device["capacity_bytes"] = nullptr;
    json["devices"].push_back(std::move(device));
  }
  json["channels"] = Json::array();
  for (ChannelId id = 0; id < cluster.num_channels(); ++id) {
    const ChannelUse& use = outcome.timeline.channels[id];
    json["channels"].push_back(
        {{"name", cluster.channel_name(id)}, {"busy_ns", use.busy}, {"bytes", use.bytes}});
  }
  json["transfers"] = outcome.timeline.num_transfers;
  json["transfer_bytes"] = outcome.timeline.transfer_bytes;
  if (run != nullptr) {
    json["placer"] = run->run.placer.to_string();
    json["scheduler"] = run->run.scheduler;
    json["seed"] = run->run.seed;
    json["evaluations"] = run->evaluations;
    json["seconds"] = run->seconds;
  }
  if (explanation != nullptr) json["explanation"] = to_json(*explanation, outcome);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_text(const Outcome& outcome) {
  std::string text = fmt::format("step time {}\n", format_time(outcome.timeline.step));
  if (outcome.throughput) {
    text += fmt::format("period    {} per step of a stream\n", format_time(outcome.time()));
  }
  const std::string limit = outcome.most_devices == 0 ? ""
                            : outcome.most_devices == 1
                                ? " on one device"
                                : fmt::format(" on at most {} devices", outcome.most_devices);
  if (outcome.optimal()) {
    text += fmt::format("proven optimal: no placement{} that fits beats {} ({})\n", limit,
                        format_time(outcome.bound.step), outcome.bound.reason);
  } else if (outcome.fits()) {
    text += fmt::format(
        "no placement{} that fits beats {} ({}), so at most {:.2f} times as fast is possible\n",
        limit, format_time(outcome.bound.step), outcome.bound.reason, outcome.ratio_to_bound());
  } else {
    text += "it does not fit in memory: see below\n";
  }
  return text + "\n" + device_table(outcome) + "\n" + channel_table(outcome);
}

std::string describe_problem(const Problem& problem) {
  const Graph& graph = problem.graph();
  Bytes resident = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) resident += problem.resident_bytes(op);
  return fmt::format("{}: {} ops, {} tensors, {} of parameters and state\non {} ({} devices), {}\n",
                     graph.name(), format_count(graph.num_ops()), format_count(graph.num_tensors()),
                     format_bytes(resident), problem.cluster().name(), problem.num_devices(),
                     describe_costs(problem));
}

void write_placement(const std::string& path, const Outcome& outcome, const RunResult& run) {
  PlacementFile file{
      outcome.problem().graph().name(),
      outcome.problem().cluster().name(),
      run.run.placer.to_string(),
      run.run.seed,
      outcome.placement,
      outcome.schedule,
      PlacementFile::Predicted{outcome.timeline.step, outcome.fits(), outcome.bound.step}};
  if (outcome.throughput) file.predicted->period = outcome.throughput->period;
  write_file(path, write_placement_json(outcome.problem(), file));
}

void write_trace(const std::string& path, const Outcome& outcome) {
  write_file(path, write_trace_json(outcome.problem(), outcome.placement, outcome.timeline));
}

}  // namespace emplace::cli
