#include "report/partition_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "io/partition_json.h"
#include "io/placement_file.h"
#include "report/assessment_report.h"
#include "report/prose.h"
#include "report/rates_report.h"
#include "report/table.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

std::string shortfall(const PartitionAnswer& answer) {
  std::vector<std::string> short_of;
  for (DeviceId device = 0; device < answer.chosen.peaks.size(); ++device) {
    const Bytes over = answer.chosen.peaks[device] - answer.cluster().device(device).memory;
    if (over <= 0) continue;
    short_of.push_back(
        fmt::format("{} by {}", answer.cluster().device(device).name, format_bytes(over)));
  }
  return fmt::format("Nothing fits: short of memory are {}.", join_words(short_of));
}

Json json_of(const WayToRun& way, const PartitionAnswer& answer) {
  const Cluster& cluster = answer.cluster();
  Json json;
  json["how"] = way.name;
  json["step_ns"] = way.step;
  json["fits"] = way.fits;
  json["transfer_bytes"] = way.moved;
  json["rates"] = to_json(rates_of(way, answer.terms, cluster));
  for (DeviceId device = 0; device < way.peaks.size(); ++device) {
    json["devices"].push_back({{"name", cluster.device(device).name},
                               {"peak_bytes", way.peaks[device]},
                               {"capacity_bytes", cluster.device(device).memory}});
  }
  return json;
}

std::string table_of_ways(const PartitionAnswer& answer) {
  const Rates known = rates_of(answer.chosen, answer.terms, answer.cluster());
  Table table({{"how"},
               {"step", Table::Align::kRight},
               {known.samples_per_second ? "samples/s" : "", Table::Align::kRight},
               {known.tokens_per_second ? "tokens/s" : "", Table::Align::kRight},
               {known.utilisation ? "MFU" : "", Table::Align::kRight},
               {known.cost_per_step ? "cost a step" : "", Table::Align::kRight},
               {"sent", Table::Align::kRight},
               {"memory of the fullest", Table::Align::kRight},
               {"fits"}});
  const auto add = [&](const WayToRun& way) {
    const Rates rates = rates_of(way, answer.terms, answer.cluster());
    table.add({way.name, format_time(way.step), rate_cell(rates.samples_per_second),
               rate_cell(rates.tokens_per_second), percent_cell(rates.utilisation),
               money_cell(rates.cost_per_step), format_bytes(way.moved),
               format_bytes(way.largest_peak()), way.fits ? "yes" : "no"});
  };
  add(answer.chosen);
  for (const WayToRun& way : answer.others) add(way);
  if (answer.on_fewer) add(*answer.on_fewer);
  if (answer.one_device) add(*answer.one_device);
  add(answer.placed);
  return table.to_string();
}

std::string table_of_devices(const PartitionAnswer& answer) {
  Table devices({{"device"}, {"memory", Table::Align::kRight}, {"of", Table::Align::kRight}});
  for (const DeviceId device : answer.devices()) {
    devices.add({answer.cluster().device(device).name, format_bytes(answer.chosen.peaks[device]),
                 format_bytes(answer.cluster().device(device).memory)});
  }
  return devices.to_string();
}

}  // namespace

std::string verdict(const PartitionAnswer& answer) {
  const auto time = [](const WayToRun& way) { return format_time(way.step); };
  const WayToRun& chosen = answer.best_in_parts();
  const WayToRun& placed = answer.placed;
  const auto& one = answer.one_device;
  const std::string workers =
      answer.on_fewer ? fmt::format("{0} devices (--workers {0})", answer.on_fewer->devices())
                      : fmt::format("{} devices", answer.workers().count());
  if (one && one->fits && (!chosen.fits || one->step <= chosen.step)) {
    return fmt::format(
        "Partitioning does not pay: the step fits {} alone and takes {} there; in parts on {} "
        "it takes {}.{}",
        answer.one_device_name, time(*one), workers, time(chosen),
        placed.fits && placed.step < one->step
            ? fmt::format(" Placing whole ops does: {} with `emplace place`.", time(placed))
            : "");
  }
  if (placed.fits && (!chosen.fits || placed.step <= chosen.step)) {
    return fmt::format("Placing whole ops is better: {} with `emplace place`, {} in parts.",
                       time(placed), chosen.fits ? time(chosen) : "does not fit");
  }
  if (!chosen.fits) return shortfall(answer);
  if (one && one->fits) {
    return fmt::format("Partitioning pays: {} in parts on {}, {} on one, {} placed whole.",
                       time(chosen), workers, time(*one), time(placed));
  }
  return fmt::format(
      "The step does not fit one device; in parts on {} it takes {}, placed whole {}.", workers,
      time(chosen), placed.fits ? time(placed) : "it does not fit");
}

std::string to_text(const PartitionAnswer& answer) {
  std::string text = describe_problem(*answer.whole);
  text += fmt::format(
      "\ndivided by {} among {} workers ({}), in {} kinds of ops and {} of tensors\n",
      answer.method, answer.workers().count(), fmt::join(answer.workers().factors(), " x "),
      answer.input->classes.num_ops, answer.input->classes.num_tensors);
  text += table_of_ways(answer) + "\n" + table_of_devices(answer) + "\n" + wrapped(verdict(answer));
  if (answer.undivided.empty()) return text;
  return text + wrapped(fmt::format(
                    "Not divided, since they have no description or their shapes are not known "
                    "(every worker computes them whole): {}.",
                    join_words(answer.undivided)));
}

std::string to_json(const PartitionAnswer& answer) {
  Json json = json_of(answer.chosen, answer);
  json["method"] = answer.method;
  json["workers"] = answer.workers().count();
  json["factors"] = answer.workers().factors();
  for (const WayToRun& way : answer.others) {
    json["compared"].push_back(json_of(way, answer));
  }
  if (answer.on_fewer) {
    json["on_fewer"] = json_of(*answer.on_fewer, answer);
    json["on_fewer"]["workers"] = answer.on_fewer->devices();
  }
  if (answer.one_device) json["one_device"] = json_of(*answer.one_device, answer);
  json["placement"] = json_of(answer.placed, answer);
  json["verdict"] = verdict(answer);
  return json.dump(1) + "\n";
}

std::string plan_json(const PartitionAnswer& answer) {
  std::vector<std::string> names;
  for (const DeviceId device : answer.devices()) {
    names.push_back(answer.cluster().device(device).name);
  }
  return write_partition_json(*answer.graph, answer.input->descriptions, answer.plan,
                              {.cluster = answer.cluster().name(),
                               .devices = names,
                               .step = answer.outcome.value.step,
                               .fits = answer.outcome.value.fits(),
                               .moved = answer.outcome.moved});
}

std::string divided_placement_json(const PartitionAnswer& answer) {
  PlacementFile file;
  file.placement = answer.outcome.placement;
  file.placer = "partition";
  return write_placement_json(*answer.outcome.problem, file);
}

}  // namespace emplace
