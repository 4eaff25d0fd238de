#include "report/cluster_comparison.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "report/assessment_report.h"
#include "report/prose.h"
#include "report/rates_report.h"
#include "report/table.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

bool parts_are_better(const ClusterRow& row) {
  return row.in_parts && row.in_parts->fits && (!row.fits || row.in_parts->step < row.time);
}

// The better of placing whole ops and dividing tensors.
struct Best {
  Nanoseconds time = 0;
  const Rates* rates = nullptr;
  std::string how;
};
// Those that fit; the faster one, which may not be the cheaper one, first.
std::vector<Best> ways_of(const ClusterRow& row) {
  std::vector<Best> ways;
  if (row.fits) ways.push_back({row.time, &row.rates, "placed by " + row.placer});
  if (row.in_parts && row.in_parts->fits) {
    ways.push_back(
        {row.in_parts->step, &row.rates_in_parts, "tensors divided by " + row.in_parts->name});
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const Best& a, const Best& b) { return a.time < b.time; });
  return ways;
}
std::optional<Best> best_of(const ClusterRow& row) {
  const std::vector<Best> ways = ways_of(row);
  return ways.empty() ? std::nullopt : std::optional(ways.front());
}

// Which of the clusters has the least of something, as a sentence; nothing where none has it.
template <class Value, class Format>
std::string least(const std::vector<ClusterRow>& rows, const char* title, Value value,
                  Format format) {
  std::optional<double> least;
  std::string where;
  for (const ClusterRow& row : rows) {
    for (const Best& way : ways_of(row)) {
      const std::optional<double> own = value(way);
      if (!own || (least && *own >= *least)) continue;
      least = own;
      where = fmt::format("{}, {}, {}", row.cluster, format(*own), way.how);
    }
  }
  return least ? wrapped(fmt::format("{}: {}", title, where)) : std::string();
}

std::string memory_cell_of(const ClusterRow& row) {
  return fmt::format("{:.0f} %", 100 * row.fullest_memory);
}

void add_to(Table& table, const ClusterRow& row) {
  const bool hopeless = !row.why_nothing_fits.empty();
  const auto best = best_of(row);
  const Rates none;
  const Rates& rates = best ? *best->rates : none;
  table.add({row.cluster, format_count(row.devices),
             hopeless || !row.fits ? "does not fit" : format_time(row.time),
             hopeless ? "" : memory_cell_of(row),
             !row.in_parts        ? ""
             : row.in_parts->fits ? format_time(row.in_parts->step)
                                  : "does not fit",
             rate_cell(rates.samples_per_second), rate_cell(rates.tokens_per_second),
             percent_cell(rates.utilisation), money_cell(rates.cost_per_hour),
             money_cell(rates.cost_per_step), money_cell(rates.cost_per_million_samples)});
}

}  // namespace

ClusterRow make_row(const Assessment& answer, const RunResult& run,
                    const std::optional<WayToRun>& in_parts, const StepTerms& terms) {
  ClusterRow row{.cluster = answer.problem().cluster().name(),
                 .devices = answer.problem().num_devices(),
                 .why_nothing_fits = {},
                 .placer = run.run.placer.to_string(),
                 .time = answer.time(),
                 .fits = answer.fits(),
                 .bound = answer.bound,
                 .fullest_memory = answer.fullest_memory(),
                 .rates = answer.rates,
                 .in_parts = in_parts,
                 .rates_in_parts = {}};
  if (in_parts) row.rates_in_parts = rates_of(*in_parts, terms, answer.problem().cluster());
  return row;
}

ClusterRow make_hopeless_row(const Cluster& cluster, const std::string& why) {
  ClusterRow row;
  row.cluster = cluster.name();
  row.devices = cluster.num_devices();
  row.why_nothing_fits = why;
  return row;
}

std::string to_text(const std::vector<ClusterRow>& rows, const Objective& objective) {
  const auto any = [&](auto known) { return std::any_of(rows.begin(), rows.end(), known); };
  const auto title = [&](const char* name, std::optional<double> Rates::*value) {
    return std::string(
        any([&](const ClusterRow& row) { return (row.rates.*value).has_value(); }) ? name : "");
  };
  Table table(
      {{"cluster"},
       {"devices", Align::kRight},
       {std::string(objective.quantity()), Align::kRight},
       {"fullest memory", Align::kRight},
       {any([](const ClusterRow& row) { return row.in_parts.has_value(); }) ? "in parts" : "",
        Align::kRight},
       {title("samples/s", &Rates::samples_per_second), Align::kRight},
       {title("tokens/s", &Rates::tokens_per_second), Align::kRight},
       {title("MFU", &Rates::utilisation), Align::kRight},
       {title("cost an hour", &Rates::cost_per_hour), Align::kRight},
       {title("a step", &Rates::cost_per_step), Align::kRight},
       {title("a million samples", &Rates::cost_per_million_samples), Align::kRight}});
  for (const ClusterRow& row : rows) add_to(table, row);
  std::string text = table.to_string() + "\n";
  for (const ClusterRow& row : rows) {
    if (row.why_nothing_fits.empty()) continue;
    text += wrapped(fmt::format("no placement fits {}: {}", row.cluster, row.why_nothing_fits));
  }
  if (any([](const ClusterRow& row) { return parts_are_better(row); })) {
    text += wrapped(
        "in parts: tensors divided by a quick method; speed and cost are of the faster way");
  }
  text += least(
      rows, "fastest",
      [](const Best& best) { return std::optional(static_cast<double>(best.time)); },
      [](double time) { return format_time(static_cast<Nanoseconds>(time)); });
  const bool samples =
      any([](const ClusterRow& row) { return row.rates.cost_per_million_samples.has_value(); });
  return text + least(
                    rows, "cheapest",
                    [&](const Best& best) {
                      return samples ? best.rates->cost_per_million_samples
                                     : best.rates->cost_per_step;
                    },
                    [&](double money) {
                      return fmt::format("{} {}", format_money(money),
                                         samples ? "per million samples" : "a step");
                    });
}

std::string to_json(const std::vector<ClusterRow>& rows, const Objective& objective) {
  const char* time = objective.match([](const StepTime&) { return "step_ns"; },
                                     [](const StreamPeriod&) { return "period_ns"; });
  Json json = Json::array();
  for (const ClusterRow& row : rows) {
    Json one{
        {"cluster", row.cluster}, {"devices", static_cast<int>(row.devices)}, {"fits", row.fits}};
    if (!row.why_nothing_fits.empty()) {
      one["reason"] = row.why_nothing_fits;
    } else {
      one["placer"] = row.placer;
      one[time] = row.time;
      one["lower_bound_ns"] = row.bound.step;
      one["fullest_memory"] = row.fullest_memory;
      one["rates"] = to_json(row.rates);
    }
    if (row.in_parts) {
      one["in_parts"] = {{"method", row.in_parts->name},
                         {"step_ns", row.in_parts->step},
                         {"fits", row.in_parts->fits},
                         {"rates", to_json(row.rates_in_parts)}};
    }
    json.push_back(std::move(one));
  }
  return Json{{"clusters", std::move(json)}}.dump();
}

}  // namespace emplace
