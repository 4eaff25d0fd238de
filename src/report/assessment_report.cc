#include "report/assessment_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/units.h"

#include "io/file.h"
#include "io/placement_file.h"
#include "io/trace_json.h"
#include "report/explanation.h"
#include "report/prose.h"
#include "report/rates_report.h"
#include "report/stream_report.h"
#include "report/table.h"

namespace emplace {
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

std::string device_table(const Assessment& assessment) {
  const Problem& problem = assessment.problem();
  std::vector<std::int64_t> ops(problem.num_devices(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    if (problem.duration(op, assessment.placement[op]) > 0) ++ops[assessment.placement[op]];
  }
  const Nanoseconds whole = assessment.time();
  Table table({{"device"},
               {"timed ops", Align::kRight},
               {"busy", Align::kRight},
               {"", Align::kLeft, /*spare=*/true},
               {"", Align::kRight},
               {"peak memory", Align::kRight},
               {"of", Align::kRight},
               {""}});
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    const Device& device = problem.cluster().device(id);
    const Nanoseconds busy = assessment.busy(id);
    const Bytes used = assessment.used(id);
    const double share = device.memory == kUnlimited ? 0 : ratio(used, device.memory);
    table.add({device.name, format_count(ops[id]), format_time(busy),
               bar(ratio(busy, whole), kBarWidth), percent(ratio(busy, whole)), format_bytes(used),
               format_bytes(device.memory),
               used > device.memory ? "TOO SMALL by " + format_bytes(used - device.memory)
                                    : bar(share, kBarWidth)});
  }
  return table.to_string();
}

std::string channel_table(const Assessment& assessment) {
  constexpr std::size_t kShown = 4;
  const Timeline& timeline = assessment.timeline;
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
               {"", Align::kLeft, /*spare=*/true},
               {"", Align::kRight}});
  const Nanoseconds whole = assessment.time();
  for (std::size_t i = 0; i < std::min(kShown, busiest.size()); ++i) {
    const ChannelUse& use = timeline.channels[busiest[i]];
    table.add({assessment.problem().cluster().channel_name(busiest[i]), format_count(use.transfers),
               format_bytes(use.bytes), format_time(use.busy),
               bar(ratio(use.busy, whole), kBarWidth), percent(ratio(use.busy, whole))});
  }
  std::string text = table.to_string();
  if (busiest.size() > kShown)
    text += fmt::format(" and {} more channel{}\n", busiest.size() - kShown,
                        busiest.size() == kShown + 1 ? "" : "s");
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

std::string to_json(const Assessment& assessment, const RunResult* run,
                    const Explanation* explanation) {
  const Cluster& cluster = assessment.problem().cluster();
  Json json;
  json["step_ns"] = assessment.timeline.step;
  json["fits"] = assessment.fits();
  json["lower_bound_ns"] = assessment.bound.step;
  json["lower_bound_reason"] = assessment.bound.reason;
  json["optimal"] = assessment.optimal();
  json["gap"] = assessment.fits() ? Json(assessment.ratio_to_bound() - 1) : Json();
  if (assessment.throughput) {
    json["period_ns"] = assessment.throughput->period;
    json["stream"] = stream_json(assessment);
  }
  json["rates"] = to_json(assessment.rates);
  json["devices"] = Json::array();
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    Json device{{"name", cluster.device(id).name},
                {"busy_ns", assessment.timeline.devices[id].busy},
                {"peak_bytes", assessment.used(id)},
                {"capacity_bytes", cluster.device(id).memory}};
    if (cluster.device(id).memory == kUnlimited) device["capacity_bytes"] = nullptr;
    json["devices"].push_back(std::move(device));
  }
  json["channels"] = Json::array();
  for (ChannelId id = 0; id < cluster.num_channels(); ++id) {
    const ChannelUse& use = assessment.timeline.channels[id];
    json["channels"].push_back(
        {{"name", cluster.channel_name(id)}, {"busy_ns", use.busy}, {"bytes", use.bytes}});
  }
  json["transfers"] = assessment.timeline.num_transfers;
  json["transfer_bytes"] = assessment.timeline.transfer_bytes;
  if (run != nullptr) {
    json["placer"] = run->run.placer.to_string();
    json["scheduler"] = run->run.scheduler;
    json["seed"] = run->run.seed;
    json["evaluations"] = run->evaluations;
    json["seconds"] = run->seconds;
  }
  if (explanation != nullptr) json["explanation"] = to_json(*explanation, assessment);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_text(const Assessment& assessment) {
  std::string text = fmt::format("step time {}\n", format_time(assessment.timeline.step));
  if (assessment.throughput) {
    text += fmt::format("period    {} {}\n", format_time(assessment.time()),
                        describe_in_flight(*assessment.throughput));
  }
  text += to_text(assessment.rates);
  text += assessment.fits() ? describe_gap(assessment) + "\n"
                            : "it does not fit in memory: see below\n";
  return text + "\n" + device_table(assessment) + "\n" + channel_table(assessment);
}

std::string describe_gap(const Assessment& assessment) {
  std::string limit = assessment.most_devices == 0 ? ""
                      : assessment.most_devices == 1
                          ? " on one device"
                          : fmt::format(" on at most {} devices", assessment.most_devices);
  if (assessment.leaves_cpus_out) limit += " without CPUs";
  // Placements that cut modules may be faster.
  const std::string whole =
      assessment.granularity == Granularity::kOp
          ? ""
          : fmt::format(" that keeps {}s whole", granularity_name(assessment.granularity));
  const std::string which = limit + (whole.empty() ? " that fits" : whole + " and fits");
  const std::string proof =
      fmt::format("{} ({})", format_time(assessment.bound.step), assessment.bound.reason);
  if (assessment.optimal()) {
    return fmt::format("proven optimal: no placement{} beats {}", which, proof);
  }
  const double above = (assessment.ratio_to_bound() - 1) * 100;
  if (above <= 0.1) {
    return fmt::format("optimal to 0.1 %: no placement{} beats {}", which, proof);
  }
  if (above > 100) {
    return fmt::format(
        "at most {:.1f} times as long as the best possible placement{} takes: none{} that fits "
        "beats {}",
        std::ceil(assessment.ratio_to_bound() * 10) / 10, whole, limit, proof);
  }
  const double tenths = std::ceil(above * 10 - 1e-9) / 10;
  return fmt::format(
      "within {} % of the best possible placement{}: none{} that fits beats {}",
      tenths < 1 ? fmt::format("{:.1f}", tenths) : fmt::format("{:.0f}", std::ceil(above - 1e-9)),
      whole, limit, proof);
}

std::string describe_problem(const Problem& problem) {
  const Graph& graph = problem.graph();
  Bytes resident = 0;
  std::int64_t timed = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    resident += problem.resident_bytes(op);
    timed += problem.mean_duration(op) > 0 ? 1 : 0;
  }
  return fmt::format("{}: {} ({} take{} time), {}, {} of parameters and state\non {} ({}), {}\n",
                     graph.name(), count_of(graph.num_ops(), "op"), format_count(timed),
                     timed == 1 ? "s" : "", count_of(graph.num_tensors(), "tensor"),
                     format_bytes(resident), problem.cluster().name(),
                     count_of(problem.num_devices(), "device"), describe_costs(problem));
}

std::string placement_json(const Assessment& assessment, const RunResult& run,
                           const MadeWith& made_with) {
  PlacementFile file{
      assessment.problem().graph().name(),
      assessment.problem().cluster().name(),
      run.run.placer.to_string(),
      run.run.seed,
      assessment.placement,
      assessment.schedule,
      PlacementFile::Predicted{assessment.timeline.step, assessment.fits(), assessment.bound.step}};
  file.made_with = made_with;
  if (assessment.throughput) {
    file.predicted->period = assessment.throughput->period;
    file.predicted->in_flight = assessment.throughput->in_flight;
  }
  return write_placement_json(assessment.problem(), file);
}

std::string trace_json(const Assessment& assessment) {
  if (assessment.throughput && assessment.throughput->in_flight > 0) {
    constexpr int kMostTraced = 32;  // steps
    return write_trace_json(assessment.problem(), assessment.placement,
                            first_steps(assessment, kMostTraced).steps);
  }
  return write_trace_json(assessment.problem(), assessment.placement, assessment.timeline);
}

std::string why_nothing_fits_json(const std::string& reason, const std::string& advice) {
  Json json;
  json["fits"] = false;
  json["reason"] = reason;
  json["advice"] = Json::array();
  for (std::size_t begin = 0; begin < advice.size();) {
    // A line that is indented further goes on with the sentence.
    std::size_t end = std::min(advice.find('\n', begin), advice.size());
    while (advice.compare(end, 3, "\n  ") == 0) {
      end = std::min(advice.find('\n', end + 1), advice.size());
    }
    json["advice"].push_back(unwrapped(advice.substr(begin, end - begin)));
    begin = end + 1;
  }
  return json.dump(2) + "\n";
}

}  // namespace emplace
