#include "report/comparison.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/units.h"

#include "placers/all.h"

#include "report/assessment_report.h"
#include "report/prose.h"
#include "report/rates_report.h"
#include "report/shortfall.h"
#include "report/table.h"

namespace emplace {
namespace {

using Align = Table::Align;

ComparisonRow make_row(const RunResult& result, const Assessment& assessment) {
  ComparisonRow row{.placer = result.run.placer.to_string(),
                    .family = all_placers().info(result.run.placer.key).family,
                    .scheduler = result.run.scheduler,
                    .seed = result.run.seed,
                    .time = assessment.time(),
                    .ratio_to_bound = assessment.ratio_to_bound(),
                    .fits = assessment.fits(),
                    .fullest_memory = assessment.fullest_memory(),
                    .transfers = assessment.timeline.num_transfers,
                    .transfer_bytes = assessment.timeline.transfer_bytes,
                    .evaluations = result.evaluations,
                    .rates = assessment.rates,
                    .seconds = result.seconds,
                    .json = to_json(assessment, &result)};
  for (DeviceId device = 0; device < assessment.problem().num_devices(); ++device) {
    const Bytes capacity = assessment.problem().cluster().device(device).memory;
    const Bytes used = assessment.used(device);
    row.short_by += std::max<Bytes>(0, used - capacity);
  }
  return row;
}

std::string memory_cell(const ComparisonRow& row) {
  if (row.short_by > 0) return "does not fit: " + format_bytes(row.short_by) + " short";
  return fmt::format("{:.0f} %", row.fullest_memory * 100);
}

std::string times_as_fast(Nanoseconds other, Nanoseconds best) {
  return fmt::format(
      "{:.2f} times as fast",
      static_cast<double>(other) / static_cast<double>(std::max<Nanoseconds>(1, best)));
}

// The best that fits of the placers that most people would use: heuristics.
const ComparisonRow* best_heuristic(const Comparison& comparison) {
  for (const ComparisonRow& row : comparison.rows) {
    if (row.family == "heuristic" && row.fits && row.placer != "single") return &row;
  }
  return nullptr;
}

bool devices_differ(const Cluster& cluster) {
  for (DeviceId id = 1; id < cluster.num_devices(); ++id) {
    const Device& first = cluster.device(0);
    const Device& other = cluster.device(id);
    if (other.kind != first.kind || other.memory != first.memory ||
        other.slowdown.to_double() != first.slowdown.to_double()) {
      return true;
    }
  }
  return false;
}

std::string against_one_device(const Comparison& comparison) {
  if (comparison.single.fitting) {
    const Cluster& cluster = comparison.best.problem().cluster();
    const SingleDevice& one = *comparison.single.fitting;
    return fmt::format(
        "{} as {} ({})", times_as_fast(one.value.step, comparison.best.time()),
        devices_differ(cluster) ? cluster.device(one.device).name + " alone" : "one device",
        format_time(one.value.step));
  }
  if (!comparison.single.fastest) return "one device may not run every op";
  return fmt::format(
      "no single device holds it ({} would need {})",
      comparison.best.problem().cluster().device(comparison.single.fastest->device).name,
      format_bytes(comparison.single.fastest->used));
}

}  // namespace

TimeNames names_of(const Objective& objective) {
  return {.quantity = objective.quantity(),
          .field = objective.match([](const StepTime&) { return "step_ns"; },
                                   [](const StreamPeriod&) { return "period_ns"; })};
}

Comparison compare(const SubsetProblems& problems, PortfolioResult results, std::size_t asked) {
  const std::size_t done = results.results.size();
  const Assessor assessor = assessor_of(problems, results);
  std::vector<ComparisonRow> rows;
  rows.reserve(results.results.size());
  for (const RunResult& result : results.results) {
    rows.push_back(make_row(result, assess(assessor, problems, result)));
  }
  Evaluator evaluator(problems.whole(), problems.objective());
  return {.rows = std::move(rows),
          .best = assess(assessor, problems, results.best()),
          .single = try_single_devices(evaluator),
          .asked = asked,
          .done = done};
}

std::string headline(const Comparison& comparison) {
  const Assessment& best = comparison.best;
  const std::string& name = comparison.rows.front().placer;
  if (!best.fits()) {
    return fmt::format("None fits in memory; {} is nearest.\n{}", name, describe_shortfall(best));
  }
  std::string text = fmt::format("Best: {}, a {} of {}.\n", name, best.objective.quantity(),
                                 format_time(best.time()));
  text += wrapped(fmt::format("That is {}.", describe_gap(best)));
  std::string gains = against_one_device(comparison);
  const ComparisonRow* heuristic = best_heuristic(comparison);
  if (heuristic != nullptr && heuristic->placer != name) {
    gains += fmt::format("; {} as the best heuristic ({}, {})",
                         times_as_fast(heuristic->time, best.time()), heuristic->placer,
                         format_time(heuristic->time));
  }
  gains.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(gains.front())));
  return text + wrapped(gains + ".");
}

std::string to_table(const std::vector<ComparisonRow>& rows, const TimeNames& names,
                     bool with_seeds) {
  constexpr int kBarCells = 16;
  Nanoseconds slowest = 1;
  for (const ComparisonRow& row : rows) slowest = std::max(slowest, row.time);
  const Rates& rates = rows.front().rates;
  Table table({{"placer"},
               {"order"},
               {with_seeds ? "seed" : "", Align::kRight},
               {std::string(names.quantity), Align::kRight},
               {"", Align::kLeft, /*spare=*/true},
               {names.bounded ? "/ bound" : "", Align::kRight},
               {rates.samples_per_second ? "samples/s" : "", Align::kRight},
               {rates.utilisation ? "MFU" : "", Align::kRight},
               {rates.cost_per_step ? "cost a step" : "", Align::kRight},
               {"memory", Align::kRight},
               {"transfers", Align::kRight},
               {"sent", Align::kRight},
               {"search", Align::kRight}});
  for (const ComparisonRow& row : rows) {
    table.add({row.placer, row.scheduler, with_seeds ? fmt::format("{}", row.seed) : "",
               format_time(row.time),
               bar(static_cast<double>(row.time) / static_cast<double>(slowest), kBarCells),
               names.bounded ? fmt::format("{:.2f}", row.ratio_to_bound) : "",
               rate_cell(row.rates.samples_per_second), percent_cell(row.rates.utilisation),
               money_cell(row.rates.cost_per_step), memory_cell(row), format_count(row.transfers),
               format_bytes(row.transfer_bytes), search_time(row.seconds)});
  }
  return table.to_string();
}

}  // namespace emplace
