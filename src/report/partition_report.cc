#include "report/partition_report.h"

#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "io/partition_json.h"
#include "io/placement_file.h"
#include "report/assessment_report.h"
#include "report/plan_words.h"
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
  if (way.copies > 1) json["copies"] = way.copies;
  if (way.alike > 1) json["machines_alike"] = way.alike;
  if (way.added_cost) {
    json["added_cost"] = {{"cost_ns", way.added_cost->cost},
                          {"lower_bound_ns", way.added_cost->lower_bound},
                          {"proven", way.added_cost->proven}};
  }
  if (!way.unmeasured.empty()) json["unmeasured_devices"] = way.unmeasured;
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

// Ways that divide little, if any: copies take as long as the whole. Machines with slow links
// between them do the same on purpose.
std::string note_copies(const PartitionAnswer& answer) {
  constexpr double kMuch = 1.5;
  std::vector<std::string> ways;
  std::map<int, std::vector<std::string>> alike;  // by how many machines do the same
  const auto add = [&](const WayToRun& way) {
    if (way.alike > 1) alike[way.alike].push_back(way.name);
    if (way.copies / way.alike < kMuch) return;
    ways.push_back(fmt::format("{} {:.1f}", way.name, way.copies));
  };
  add(answer.chosen);
  for (const WayToRun& way : answer.others) add(way);
  if (answer.on_fewer) add(*answer.on_fewer);
  std::string text;
  const auto& fewer = answer.on_fewer;
  for (const auto& [machines, names] : alike) {
    text += wrapped(
        fmt::format("With {} each of {} machines does the same, as links between them are slow{}.",
                    join_words(names), machines,
                    fewer && &answer.best_in_parts() == &*fewer
                        ? fmt::format("; --workers {} is as fast", fewer->devices())
                        : ""));
  }
  if (!ways.empty()) {
    text += wrapped(fmt::format(
        "Copies: so many devices compute the same, on average, for want of enough examples, or "
        "rows, to divide: with {}.",
        join_words(ways)));
  }
  return text;
}

// Steps that go by measurements stand beside some that do not.
std::string note_unmeasured(const PartitionAnswer& answer) {
  std::map<std::set<int>, std::vector<std::string>> ways;
  const auto add = [&](const WayToRun& way) {
    if (!way.unmeasured.empty()) ways[way.unmeasured].push_back(way.name);
  };
  add(answer.chosen);
  for (const WayToRun& way : answer.others) add(way);
  if (answer.on_fewer) add(*answer.on_fewer);
  std::string text;
  for (const auto& [devices, names] : ways) {
    text += wrapped(fmt::format(
        "Collectives among {} devices were not measured: for them the steps of {} go by "
        "what the links promise, which measured steps beside them may fall short of.",
        fmt::join(devices, ", "), join_words(names)));
  }
  return text;
}

std::string note_undivided(const PartitionAnswer& answer) {
  std::string text;
  if (!answer.undivided.empty()) {
    text += wrapped(
        fmt::format("Not divided, since they have no description or their shapes are not known "
                    "(every worker computes them whole): {}.",
                    join_words(answer.undivided)));
  }
  if (!answer.unattributed.empty()) {
    text += wrapped(fmt::format(
        "Not divided, since the graph does not say their attributes (strides, axes, numbers; every "
        "worker computes them whole): {}. emplace.torch.capture writes them.",
        join_words(answer.unattributed)));
  }
  return text;
}

std::string_view terms_of(SendingInBound sending) {
  switch (sending) {
    case SendingInBound::kCounted:
      return "for computing and what it has to send";
    case SendingInBound::kMeasured:
      return "for computing alone (measured collectives may be sooner than links say)";
    case SendingInBound::kNoTime:
      return "for computing alone (there was no time to count what it has to send)";
    case SendingInBound::kNowhere:
      break;
  }
  return "for computing alone";
}

std::string note_bound(const PartitionAnswer& answer) {
  // Fewer devices may take less than any division among all.
  const WayToRun& best = answer.best_on_all();
  if (answer.bound.step <= 0 || !best.fits) return "";
  return wrapped(fmt::format(
      "No division among {} devices takes less than {}, {}: at most {:.2f} times as fast is "
      "possible.",
      answer.on_fewer ? fmt::format("all {}", answer.workers().count()) : "these",
      format_time(answer.bound.step), terms_of(answer.bound.sending),
      static_cast<double>(best.step) / static_cast<double>(answer.bound.step)));
}

// Whether methods that go by their costs alone found the best by them.
std::string note_added_costs(const PartitionAnswer& answer) {
  std::string text;
  const auto add = [&](const WayToRun& way) {
    if (!way.added_cost) return;
    const AddedCost& cost = *way.added_cost;
    text += wrapped(fmt::format(
        "{} adds up {} for computing and moving; {}.", way.name, format_time(cost.cost),
        cost.proven ? "it is proven that none of the plans that it may choose costs less"
        : cost.lower_bound > 0
            ? fmt::format("none of the plans that it may choose costs less than {}",
                          format_time(cost.lower_bound))
            : "it did not weigh all plans that it may choose"));
  };
  add(answer.chosen);
  for (const WayToRun& way : answer.others) add(way);
  return text;
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

namespace {

// How many share the work, and what asks for that.
std::string devices_of(const PartitionAnswer& answer, const WayToRun& way) {
  if (answer.on_fewer && &way == &*answer.on_fewer) {
    return fmt::format("{0} devices (--workers {0})", way.devices());
  }
  const std::string devices = fmt::format("{} devices", answer.workers().count());
  return &way == &answer.chosen ? devices : fmt::format("{} (--method {})", devices, way.name);
}

}  // namespace

std::string verdict(const PartitionAnswer& answer) {
  const auto time = [](const WayToRun& way) { return format_time(way.step); };
  const WayToRun& chosen = answer.best_in_parts();
  const WayToRun& placed = answer.placed;
  const auto& one = answer.one_device;
  const std::string workers = devices_of(answer, chosen);
  // What is said against it is said of all devices alone then.
  const bool of_all = answer.fewer_left_out;
  const char* untried =
      of_all ? " There was no time to try fewer devices, which may do better (--workers)." : "";
  if (one && one->fits && (!chosen.fits || one->step <= chosen.step)) {
    return fmt::format(
        "Partitioning {}does not pay: the step fits {} alone and takes {} there; in parts on {} "
        "it takes {}.{}{}",
        of_all ? "among all devices " : "", answer.one_device_name, time(*one), workers,
        time(chosen),
        placed.fits && placed.step < one->step
            ? fmt::format(" Placing whole ops does: {} with `emplace place`.", time(placed))
            : "",
        untried);
  }
  if (placed.fits && (!chosen.fits || placed.step <= chosen.step)) {
    return fmt::format("Placing whole ops is better: {} with `emplace place`, {} in parts{}.{}",
                       time(placed), chosen.fits ? time(chosen) : "does not fit",
                       of_all ? " on all devices" : "", untried);
  }
  if (!chosen.fits) return shortfall(answer) + untried;
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
  text +=
      wrapped("The plan: " + plan_in_words(*answer.graph, answer.input->descriptions, answer.plan));
  text +=
      note_bound(answer) + note_added_costs(answer) + note_copies(answer) + note_unmeasured(answer);
  if (!answer.not_compared.empty()) {
    text += wrapped(
        fmt::format("Not compared, since the time was over: {}.", join_words(answer.not_compared)));
  }
  if (!answer.too_large.empty()) {
    text +=
        wrapped(fmt::format("Not compared, since the divided graph would have too many ops: {}.",
                            join_words(answer.too_large)));
  }
  for (const auto& [method, reason] : answer.failed) {
    text += wrapped(fmt::format("Not compared, as its plan is faulty, which is a defect: {} ({}).",
                                method, reason));
  }
  return text + note_undivided(answer);
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
  json["lower_bound_ns"] = answer.bound.step;
  json["lower_bound_counts_sending"] = answer.bound.sending == SendingInBound::kCounted;
  json["not_compared"] = answer.not_compared;
  if (!answer.too_large.empty()) json["too_large"] = answer.too_large;
  for (const auto& [method, reason] : answer.failed) {
    json["failed"].push_back({{"method", method}, {"error", reason}});
  }
  json["verdict"] = verdict(answer);
  json["plan_in_words"] = plan_in_words(*answer.graph, answer.input->descriptions, answer.plan);
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
