#include "reproduce/tables.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/units.h"

#include "placers/all.h"

namespace emplace::bench {
namespace {

std::string format_interval(const MeanInterval& interval) {
  // Of one value, or of one that is repeated.
  if (!std::isfinite(interval.high) || interval.high <= interval.low * (1 + 1e-9)) {
    return fmt::format("{:.3f}", interval.mean);
  }
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", interval.mean, interval.low, interval.high);
}

std::string format_claimed(const Statement& statement) {
  if (statement.least > 0) return fmt::format("{:.2f} to {:.2f}", statement.least, statement.most);
  return fmt::format("at most {:.2f}", statement.most);
}

// "5 seeds", "3 models".
std::string format_sample(const Statement& statement, const std::optional<Ratio>& ratio,
                          int seeds) {
  if (ratio && ratio->sample == Sample::kModels) {
    const std::size_t models = statement.workloads.size();
    return models == 1 ? "one model" : fmt::format("{} models", models);
  }
  return seeds == 1 ? "one seed" : fmt::format("{} seeds", seeds);
}

const char* measure_name(Measure measure) {
  switch (measure) {
    case Measure::kStepTime:
      return "step times";
    case Measure::kEvaluations:
      return "placements";
    case Measure::kAgentSeconds:
      return "the agent's seconds";
    case Measure::kMeasuredSeconds:
      break;
  }
  return "seconds with real steps";
}

Verdict verdict_of(const Statement& statement, const Evidence& evidence) {
  return evidence.has(statement) ? judge(statement, evidence.ratio(statement)) : Verdict::kNotRun;
}

Verdict verdict_of(const Claim& claim, const Evidence& evidence) {
  std::vector<Verdict> verdicts;
  for (const Statement& statement : claim.statements) {
    verdicts.push_back(verdict_of(statement, evidence));
  }
  return judge(verdicts);
}

// One row a claim, one column a version.
std::string verdicts_table(const Program& program, const Evidence& evidence) {
  struct Row {
    std::string text;
    std::string source;
    std::map<Version, Verdict> verdicts;
  };
  std::vector<std::string> order;
  std::map<std::string, Row> rows;
  for (const Part& part : program) {
    for (const Claim& claim : part.claims) {
      if (!rows.contains(claim.key)) order.push_back(claim.key);
      Row& row = rows[claim.key];
      row.text = claim.text;
      row.source = claim.source;
      row.verdicts[part.version] = verdict_of(claim, evidence);
    }
  }
  std::string text = "| claim | source |";
  for (const Part& part : program) text += fmt::format(" {} |", to_string(part.version));
  text += "\n|---|---|";
  for (std::size_t i = 0; i < program.size(); ++i) text += "---|";
  text += "\n";
  for (const std::string& key : order) {
    const Row& row = rows.at(key);
    text += fmt::format("| {}: {} | {} |", key, row.text, row.source);
    for (const Part& part : program) {
      const auto found = row.verdicts.find(part.version);
      text +=
          found == row.verdicts.end() ? " |" : fmt::format(" **{}** |", to_string(found->second));
    }
    text += "\n";
  }
  return text;
}

std::string statements_table(const Claim& claim, Version version, const Evidence& evidence) {
  std::string text = fmt::format("\n## {}, {}\n{} ({}).\n\n", claim.key, to_string(version),
                                 claim.text, claim.source);
  text +=
      "| statement | on | ratio of | measured, 95 % interval | interval over | claimed | verdict | "
      "code |\n|---|---|---|---|---|---|---|---|\n";
  for (const Statement& statement : claim.statements) {
    const auto ratio = evidence.has(statement) ? evidence.ratio(statement) : std::optional<Ratio>();
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", statement.text,
                        fmt::join(statement.workloads, ", "), measure_name(statement.measure),
                        ratio ? format_interval(ratio->interval) : "",
                        format_sample(statement, ratio, evidence.seeds(statement)),
                        format_claimed(statement), to_string(verdict_of(statement, evidence)),
                        fmt::join(evidence.codes(statement), ", "));
  }
  return text;
}

// The mean step over the seeds that found one that fits, and how many did where not all.
std::string step_cell(const Evidence& evidence, const std::string& name,
                      const std::string& entrant) {
  if (!evidence.has(name, entrant)) return "not run";
  const int seeds = evidence.seeds(name, entrant);
  std::vector<double> logarithms;
  for (int seed = 1; seed <= seeds; ++seed) {
    const LearningRun& one = evidence.run(name, entrant, seed);
    if (one.fits) logarithms.push_back(std::log(static_cast<double>(one.step)));
  }
  if (logarithms.empty()) return "does not fit";
  const MeanInterval steps = geometric_interval(logarithms);
  std::string cell = format_time(static_cast<Nanoseconds>(steps.mean));
  if (std::isfinite(steps.high) && steps.high > steps.mean * 1.0005) {
    cell += fmt::format(" ±{:.0f} %", 100 * (steps.high / steps.mean - 1));
  }
  if (logarithms.size() < static_cast<std::size_t>(seeds)) {
    cell += fmt::format(" ({} of {} fit)", logarithms.size(), seeds);
  }
  return cell;
}

// Placements that a run had evaluated when it had its best.
double placements_to_best(const LearningRun& run) {
  return run.history.empty() ? 0 : static_cast<double>(run.history.back().evaluations);
}

std::string until_best(const Evidence& evidence, const std::string& name,
                       const std::string& entrant) {
  const int seeds = evidence.seeds(name, entrant);
  double mean = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    mean += placements_to_best(evidence.run(name, entrant, seed)) / seeds;
  }
  return fmt::format(", after {}", format_count(static_cast<std::int64_t>(mean)));
}

std::string grid_table(const Grid& grid, Version version, const Evidence& evidence) {
  std::string text = fmt::format("\n## {}, {}\n{} ({}).\n\n| workload |", grid.key,
                                 to_string(version), grid.text, grid.source);
  for (const Grid::Column& column : grid.columns) text += fmt::format(" {} |", column.title);
  text += " seeds | code |\n|---|---|---|";
  for (std::size_t i = 0; i < grid.columns.size(); ++i) text += "---|";
  text += "\n";
  for (const std::string& name : grid.workloads) {
    text += fmt::format("| {} |", name);
    std::set<int> seeds;
    std::set<std::string> codes;
    for (const Grid::Column& column : grid.columns) {
      const bool has = evidence.has(name, column.entrant);
      text += fmt::format(
          " {}{} |", step_cell(evidence, name, column.entrant),
          has && grid.until_best ? until_best(evidence, name, column.entrant) : std::string());
      if (!has) continue;
      seeds.insert(evidence.seeds(name, column.entrant));
      codes.merge(evidence.codes(name, column.entrant));
    }
    text += fmt::format(" {} | {} |\n", fmt::join(seeds, ", "), fmt::join(codes, ", "));
  }
  return text;
}

// Steps of training after which a search of real steps has paid for itself, against the expert.
std::string pays_off(const Evidence& evidence, const std::string& name, const LearningRun& run) {
  if (!run.fits || run.measured_seconds <= 0 || !evidence.has(name, "expert")) return "";
  const LearningRun& expert = evidence.run(name, "expert", 1);
  if (!expert.fits) return "at once: the expert's does not fit";
  const double saved = static_cast<double>(expert.step - run.step) * 1e-9;
  if (saved <= 0) return "never";
  return format_count(static_cast<std::int64_t>(run.measured_seconds / saved));
}

std::string result_row(const Evidence& evidence, const std::string& name,
                       const std::string& placer) {
  const int seeds = evidence.seeds(name, placer);
  if (!evidence.has(name, placer)) return "";
  std::vector<double> logarithms;
  int fitting = 0;
  double seconds = 0;
  double best_after = 0;
  double measured = 0;
  double groups = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const LearningRun& one = evidence.run(name, placer, seed);
    fitting += one.fits ? 1 : 0;
    seconds += one.agent_seconds / seeds;
    best_after += placements_to_best(one) / seeds;
    measured += one.measured_seconds / seeds;
    groups += one.groups_used / seeds;
  }
  const std::vector<double> times = evidence.step_times(name, placer);
  for (const double time : times) logarithms.push_back(std::log(time));
  return fmt::format("| {} | {} | {} | {:.3f} | {} of {} | {:.1f} | {:.0f} | {} | {} | {} | {} |\n",
                     name, placer, format_interval(geometric_interval(logarithms)),
                     *std::min_element(times.begin(), times.end()), fitting, seeds, seconds,
                     best_after, measured > 0 ? fmt::format("{:.2f}", measured / 3600) : "",
                     pays_off(evidence, name, evidence.run(name, placer, 1)),
                     groups > 0 ? fmt::format("{:.0f}", groups) : "",
                     fmt::join(evidence.codes(name, placer), ", "));
}

std::string results_table(const Entrants& entrants, const Evidence& evidence) {
  std::string text =
      "\n## Every run\nStep times over those on one device; the means of the seeds. Hours are "
      "what "
      "the search would take if every placement ran for 15 steps, the agent's time included; a "
      "search has paid for itself after so many steps that are shorter than the expert's (first "
      "seed).\n\n"
      "| workload | placer | mean, 95 % interval | best | fit | the agent's seconds | best after "
      "placements | hours with real steps | paid for after steps | groups used | code |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Workload& one : workloads()) {
    const auto entry = entrants.find(one.name);
    if (entry == entrants.end()) continue;
    for (const std::string& placer : entry->second) text += result_row(evidence, one.name, placer);
  }
  return text;
}

std::string workloads_table(const Entrants& entrants, const Evidence& evidence) {
  std::string text =
      "\n## Workloads\n| name | model | ops | devices | one device | placements a run |\n"
      "|---|---|---|---|---|---|\n";
  for (const Workload& one : workloads()) {
    if (!entrants.contains(one.name)) continue;
    const Stage& stage = evidence.stage(one.name);
    const std::string devices =
        one.cluster.empty() ? fmt::format("{} of today, each with {} % of what one would need",
                                          one.devices, one.memory_percent)
                            : fmt::format("`{}`", one.cluster);
    text += fmt::format("| {} | `{}` | {} | {} | {} | {} |\n", one.name, one.model,
                        format_count(stage.simulator->problem().num_ops()), devices,
                        format_time(stage.single), format_count(evidence.evaluations(one.name)));
  }
  return text;
}

}  // namespace

Entrants entrants_of(const Program& program) {
  Entrants entrants;
  for (const Part& part : program) {
    for (const Claim& claim : part.claims) {
      for (const Statement& statement : claim.statements) {
        for (const std::string& name : statement.workloads) {
          entrants[name].insert({statement.left, statement.right});
        }
      }
    }
    for (const Grid& grid : part.grids) {
      for (const std::string& name : grid.workloads) {
        for (const Grid::Column& column : grid.columns) entrants[name].insert(column.entrant);
      }
    }
  }
  for (const auto& [name, placers] : entrants) {
    for (const std::string& placer : placers) all_placers().make(parse_entrant(placer).placer);
  }
  return entrants;
}

std::string to_markdown(const Program& program, const Entrants& entrants,
                        const Evidence& evidence) {
  std::string text = verdicts_table(program, evidence);
  for (const Part& part : program) {
    for (const Grid& grid : part.grids) text += grid_table(grid, part.version, evidence);
    for (const Claim& claim : part.claims) text += statements_table(claim, part.version, evidence);
  }
  return text + results_table(entrants, evidence) + workloads_table(entrants, evidence);
}

}  // namespace emplace::bench
