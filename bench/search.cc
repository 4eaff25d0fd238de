// A search against everything that is not one, on graphs x clusters: what each seed reaches in the
// time or the evaluations given, how much faster that is than the best constructive placer in its
// best order, how far it is from what is proven, how it compares with the prototype that came
// before it, and with other searches.
//
//   build/bench/search --six --clusters a,b,c --seconds 30 --seeds 3 --threads 2
//   build/bench/search --graphs zoo:gpt2-small model.onnx --clusters 4xp100 --against all
//   build/bench/search --clusters a,b --processor-time --threads 1 --seconds 5 --against all
//   build/bench/search --uneven 10 --clusters b --scheduler fifo --evaluations 20000 --against all
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"

#include "placers/all.h"

#include "bound/lower_bound.h"
#include "io/file.h"
#include "io/readers.h"
#include "report/table.h"
#include "support/processor_time.h"
#include "support/prototype.h"
#include "support/trials.h"
#include "support/uneven_steps.h"
#include "support/workloads.h"

namespace {

using namespace emplace;
using namespace emplace::bench;
using Json = nlohmann::ordered_json;

struct Settings {
  std::string placer = "auto";
  std::vector<std::string> graphs;
  bool six = false;
  std::vector<std::string> clusters{"a", "b", "c"};
  double seconds = 30;
  int threads = 2;
  int seeds = 3;
  std::uint64_t first_seed = 1;
  int jobs = 1;
  bool processor_time = false;  // seconds are of processor time
  int uneven = 0;               // graphs of support/uneven_steps.h, in place of others
  std::uint64_t first_uneven = 1;
  std::int64_t evaluations = 0;  // 0: by time
  std::string scheduler{kOwnSchedule};
  std::vector<std::string> against;  // specs, families, or "all"
  std::string json;
};

struct Case {
  std::string graph;
  std::string cluster;
  std::shared_ptr<const Simulator> simulator = nullptr;
  std::optional<Answer> classical = std::nullopt;
  LowerBound bound = {};
  std::vector<SearchResult> runs = {};                 // one a seed
  std::vector<std::vector<SearchResult>> others = {};  // the same for each placer of --against

  const SearchResult& result() const { return median(runs); }
  const Evaluation& value() const { return result().run.evaluation; }

  // The best that is known, proven beforehand or by any of the runs.
  LowerBound best_bound() const {
    LowerBound best = bound;
    for_each_run([&](const SearchResult& found) {
      if (found.run.bound.step > best.step) best = found.run.bound;
    });
    return best;
  }
  template <class Visit>
  void for_each_run(Visit visit) const {
    for (const SearchResult& found : runs) visit(found);
    for (const auto& other : others) {
      for (const SearchResult& found : other) visit(found);
    }
  }
  // How much slower the worst seed is than the best.
  std::optional<double> spread() const {
    const auto [best, worst] = std::minmax_element(
        runs.begin(), runs.end(), [](const SearchResult& a, const SearchResult& b) {
          return a.run.evaluation < b.run.evaluation;
        });
    if (!worst->run.evaluation.fits()) return std::nullopt;
    return static_cast<double>(worst->run.evaluation.step) /
           static_cast<double>(best->run.evaluation.step);
  }

  // How many times as long it takes as the search's median; nothing where either does not fit.
  std::optional<double> ratio_of(const Evaluation& other) const {
    if (!value().fits() || !other.fits()) return std::nullopt;
    return static_cast<double>(other.step) / static_cast<double>(value().step);
  }
  std::optional<double> classical_ratio() const {
    return classical ? ratio_of(classical->value) : std::nullopt;
  }
  std::optional<double> prototype_ratio() const {
    const auto before = prototype_ms(graph, cluster);
    if (!before || !value().fits()) return std::nullopt;
    return *before / milliseconds(value().step);
  }
  std::optional<double> bound_ratio() const {
    if (!value().fits() || best_bound().step == 0) return std::nullopt;
    return static_cast<double>(value().step) / static_cast<double>(best_bound().step);
  }
};

std::vector<std::string> graph_names(const Settings& settings) {
  if (!settings.graphs.empty()) return settings.graphs;
  std::vector<std::string> files = captured_graphs();
  if (settings.six) {
    std::erase_if(files, [](const std::string& file) {
      const std::string name = std::filesystem::path(file).filename().string();
      return !prototype_ms(name.substr(0, name.find('.')), "a");
    });
  }
  if (files.empty()) fail_option("no graphs given, and none in {}", kGraphFolder);
  return files;
}

std::vector<std::shared_ptr<const Graph>> load_graphs(const Settings& settings) {
  std::vector<std::shared_ptr<const Graph>> graphs;
  for (int i = 0; i < settings.uneven; ++i) {
    graphs.push_back(uneven_step(settings.first_uneven + static_cast<std::uint64_t>(i)));
  }
  if (settings.uneven > 0) return graphs;
  const std::vector<std::string> names = graph_names(settings);
  graphs.resize(names.size());
  parallel_for(names.size(), settings.jobs,
               [&](std::size_t i) { graphs[i] = read_model(names[i]).graph; });
  return graphs;
}

std::vector<Case> make_cases(const Settings& settings, const MethodSpec& placer) {
  const std::vector<std::shared_ptr<const Graph>> graphs = load_graphs(settings);
  const std::size_t clusters = settings.clusters.size();
  const std::string order =
      settings.scheduler == kOwnSchedule ? std::string(kBestSchedule) : settings.scheduler;
  std::vector<Case> cases(graphs.size() * clusters);
  parallel_for(cases.size(), settings.jobs, [&](std::size_t i) {
    const auto& graph = graphs[i / clusters];
    Case& one = cases[i];
    one.graph = graph->name();
    one.cluster = settings.clusters[i % clusters];
    const auto problem = compile(graph, cluster_for(graph, one.cluster));
    one.simulator = std::make_shared<const Simulator>(problem);
    one.bound = lower_bound(*problem);
    one.classical = best_constructive(one.simulator, placer.key, order);
  });
  return cases;
}

// The placers to compare with; a family stands for its placers, "all" for every other search.
std::vector<MethodSpec> rivals(const std::vector<std::string>& against, const MethodSpec& placer) {
  std::vector<MethodSpec> specs;
  for (const std::string& text : against) {
    const std::string family = text == "all" ? "search" : text;
    const std::size_t before = specs.size();
    for (const MethodInfo* info : all_placers().list()) {
      if (info->family == family && info->key != placer.key) specs.push_back({info->key, {}});
    }
    if (specs.size() == before) specs.push_back(MethodSpec::parse(text));
  }
  return specs;
}

struct Trial {
  Case* where;
  Search search;
  SearchResult* result;
};

std::vector<Trial> make_trials(std::vector<Case>& cases, const Settings& settings,
                               const MethodSpec& placer, const std::vector<MethodSpec>& others) {
  std::vector<Trial> trials;
  for (Case& one : cases) {
    one.runs.resize(static_cast<std::size_t>(settings.seeds));
    one.others.assign(others.size(), std::vector<SearchResult>(one.runs.size()));
    // In turn, so that all of them see the machine alike.
    for (std::size_t seed = 0; seed < one.runs.size(); ++seed) {
      const auto add = [&](const MethodSpec& spec, SearchResult& result) {
        Search search{spec, settings.first_seed + seed, settings.seconds, settings.threads};
        if (settings.evaluations > 0) search.evaluations = settings.evaluations;
        search.scheduler = settings.scheduler;
        trials.push_back({&one, std::move(search), &result});
      };
      add(placer, one.runs[seed]);
      for (std::size_t i = 0; i < others.size(); ++i) add(others[i], one.others[i][seed]);
    }
  }
  return trials;
}

void run_trials(const std::vector<Trial>& trials, int jobs) {
  std::atomic<int> done{0};
  parallel_for(trials.size(), jobs, [&](std::size_t i) {
    const Trial& trial = trials[i];
    *trial.result = run_search(trial.where->simulator, trial.search);
    const RunResult& run = trial.result->run;
    fmt::print(stderr, "[{}/{}] {} on {}: {} seed {}: {} ms, last improved at {:.1f} of {:.1f} s\n",
               ++done, trials.size(), trial.where->graph, trial.where->cluster,
               trial.search.placer.to_string(), trial.search.seed, format_value(run.evaluation),
               trial.result->last_improvement(), run.seconds);
  });
}

std::string seeds_cell(const Case& one) {
  std::string text;
  for (const SearchResult& run : one.runs) {
    text += (text.empty() ? "" : " ") + format_value(run.run.evaluation);
  }
  return text;
}

void print_cases(const std::vector<Case>& cases) {
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"graph"},
               {"cluster"},
               {"best classical"},
               {"ms", kRight},
               {"seeds, ms"},
               {"median", kRight},
               {"classical / median", kRight},
               {"bound", kRight},
               {"median / bound", kRight},
               {"prototype", kRight},
               {"prototype / median", kRight},
               {"evaluations", kRight},
               {"last at", kRight}});
  for (const Case& one : cases) {
    const SearchResult& result = one.result();
    table.add({one.graph, one.cluster, one.classical ? one.classical->name : "none",
               one.classical ? format_value(one.classical->value) : "–", seeds_cell(one),
               format_value(one.value()), format_ratio(one.classical_ratio()),
               fmt::format("{:.2f}", milliseconds(one.best_bound().step)),
               format_ratio(one.bound_ratio()),
               format_ratio(prototype_ms(one.graph, one.cluster), 1),
               format_ratio(one.prototype_ratio()), format_count(result.run.evaluations),
               fmt::format("{:.1f} s", result.last_improvement())});
  }
  fmt::print("{}\n", table.to_string());
}

struct Means {
  std::vector<double> classical;
  std::vector<double> bound;
  std::vector<double> prototype;
  int cases = 0;
};

std::map<std::string, Means> collect_means(const std::vector<Case>& cases) {
  std::map<std::string, Means> means;
  for (const Case& one : cases) {
    Means& mean = means[one.cluster];
    ++mean.cases;
    if (const auto ratio = one.classical_ratio()) mean.classical.push_back(*ratio);
    if (const auto ratio = one.bound_ratio()) mean.bound.push_back(*ratio);
    if (const auto ratio = one.prototype_ratio()) mean.prototype.push_back(*ratio);
  }
  return means;
}

// A mean and of how many cases it is: those whose both sides fit.
std::string mean_cell(const std::vector<double>& ratios) {
  if (ratios.empty()) return "–";
  return fmt::format("{:.3f} of {}", geometric_mean(ratios), ratios.size());
}

void print_means(const std::vector<Case>& cases) {
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"geometric means"},
               {"cases", kRight},
               {"classical / median", kRight},
               {"median / bound", kRight},
               {"prototype / median", kRight}});
  for (const auto& [cluster, mean] : collect_means(cases)) {
    table.add({"cluster " + cluster, fmt::format("{}", mean.cases), mean_cell(mean.classical),
               mean_cell(mean.bound), mean_cell(mean.prototype)});
  }
  fmt::print("{}\n", table.to_string());
}

std::string percent_above(double ratio) {
  return fmt::format("{:+.1f} %", 100 * (ratio - 1));
}

// Medians of all searches, and how far the one that is measured is above the best of them.
void print_searches(const std::vector<Case>& cases, const std::string& placer) {
  constexpr auto kRight = Table::Align::kRight;
  std::vector<Table::Column> columns{{"graph"}, {"cluster"}, {placer, kRight}};
  for (const auto& other : cases.front().others) {
    columns.push_back({other.front().run.run.placer.to_string(), kRight});
  }
  columns.push_back({"to the best", kRight});
  columns.push_back({"seeds", kRight});
  Table table(columns);
  std::vector<std::vector<double>> ratios(cases.front().others.size());
  std::vector<double> to_best;
  for (const Case& one : cases) {
    std::vector<std::string> row{one.graph, one.cluster, format_value(one.value())};
    std::optional<double> behind;
    for (std::size_t i = 0; i < one.others.size(); ++i) {
      const Evaluation& value = median(one.others[i]).run.evaluation;
      row.push_back(format_value(value));
      const std::optional<double> ratio = one.ratio_of(value);
      if (!ratio) continue;
      ratios[i].push_back(*ratio);
      behind = std::max(behind.value_or(0), 1 / *ratio);
    }
    if (behind) to_best.push_back(*behind);
    row.push_back(behind ? percent_above(*behind) : "–");
    row.push_back(one.spread() ? percent_above(*one.spread()) : "–");
    table.add(row);
  }
  std::vector<std::string> means{"geometric mean", fmt::format("of {}", to_best.size()), "1.000"};
  for (const std::vector<double>& of_one : ratios) {
    means.push_back(fmt::format("{:.3f}", geometric_mean(of_one)));
  }
  means.push_back(percent_above(geometric_mean(to_best)));
  means.emplace_back();
  table.add(means);
  fmt::print("{}\n", table.to_string());
}

// Every placer, constructive or searching, that is better than the median somewhere.
void print_rivals(const std::vector<Case>& cases, const std::string& placer) {
  int beaten = 0;
  int compared = 0;
  const auto compare = [&](const Case& one, const std::string& name, const Evaluation& value) {
    ++compared;
    if (!(value < one.value())) return;
    ++beaten;
    fmt::print("{} on {}: {} is better: {} against {} ms\n", one.graph, one.cluster, name,
               format_value(value), format_value(one.value()));
  };
  for (const Case& one : cases) {
    if (one.classical) compare(one, one.classical->name, one.classical->value);
    for (const auto& other : one.others) {
      compare(one, other.front().run.run.placer.to_string(), median(other).run.evaluation);
    }
  }
  fmt::print("{} is at least as good in {} of {} comparisons\n", placer, compared - beaten,
             compared);
}

// A bound above an answer that fits is a mistake of whoever proved it.
void print_contradictions(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    std::vector<Evaluation> values;
    if (one.classical) values.push_back(one.classical->value);
    one.for_each_run([&](const SearchResult& found) { values.push_back(found.run.evaluation); });
    const Evaluation best = *std::min_element(values.begin(), values.end());
    const LowerBound bound = one.best_bound();
    if (!best.fits() || bound.step <= best.step) continue;
    fmt::print("{} on {}: WRONG BOUND: {:.2f} ms ({}), but there is an answer of {} ms\n",
               one.graph, one.cluster, milliseconds(bound.step), bound.reason, format_value(best));
  }
}

Json value_json(const Evaluation& value) {
  return {{"ms", milliseconds(value.step)}, {"fits", value.fits()}};
}

Json search_json(const SearchResult& found) {
  Json json{{"placer", found.run.run.placer.to_string()}, {"seed", found.run.run.seed}};
  json.update(value_json(found.run.evaluation));
  json["bound_ms"] = milliseconds(found.run.bound.step);
  json["evaluations"] = found.run.evaluations;
  json["seconds"] = found.run.seconds;
  for (const Improvement& step : found.history) {
    json["history"].push_back({step.seconds, milliseconds(step.value.step), step.value.fits()});
  }
  return json;
}

void write_json(const std::vector<Case>& cases, const Settings& settings) {
  Json root{{"placer", settings.placer},
            {"scheduler", settings.scheduler},
            {"threads", settings.threads}};
  if (settings.evaluations > 0) {
    root["evaluations"] = settings.evaluations;
  } else {
    root["seconds"] = settings.seconds;
    root["processor_time"] = settings.processor_time;
  }
  const auto optional = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  for (const Case& one : cases) {
    Json json{{"graph", one.graph}, {"cluster", one.cluster}};
    if (one.classical) {
      json["classical"] = value_json(one.classical->value);
      json["classical"]["placer"] = one.classical->name;
    }
    json["median_ms"] = milliseconds(one.value().step);
    json["classical_ratio"] = optional(one.classical_ratio());
    json["prototype_ratio"] = optional(one.prototype_ratio());
    json["bound_ms"] = milliseconds(one.best_bound().step);
    json["bound_reason"] = one.best_bound().reason;
    for (const SearchResult& run : one.runs) json["runs"].push_back(search_json(run));
    for (const auto& other : one.others) {
      for (const SearchResult& run : other) json["others"].push_back(search_json(run));
    }
    root["cases"].push_back(std::move(json));
  }
  write_file(settings.json, root.dump() + "\n");
}

void run(const Settings& settings) {
  const MethodSpec placer = MethodSpec::parse(settings.placer);
  all_placers().make(placer);  // refuses a bad one before minutes are spent
  if (settings.processor_time && settings.threads != 1) {
    fail_option("--processor-time needs --threads 1");
  }
  const std::vector<MethodSpec> others = rivals(settings.against, placer);
  for (const MethodSpec& other : others) all_placers().make(other);

  std::vector<Case> cases = make_cases(settings, placer);
  if (settings.processor_time) count_processor_time();
  run_trials(make_trials(cases, settings, placer, others), settings.jobs);
  const std::string budget = settings.evaluations > 0
                                 ? fmt::format("{} evaluations", settings.evaluations)
                                 : fmt::format("{} s{}", settings.seconds,
                                               settings.processor_time ? " of processor time" : "");
  fmt::print("{}, {}, {} threads, order {}; times in ms\n\n", settings.placer, budget,
             settings.threads, settings.scheduler);
  print_cases(cases);
  print_means(cases);
  if (!others.empty()) print_searches(cases, settings.placer);
  print_rivals(cases, settings.placer);
  print_contradictions(cases);
  if (!settings.json.empty()) write_json(cases, settings);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A search against the constructive placers, its bound and its prototype.");
  Settings settings;
  app.add_option("--graphs", settings.graphs,
                 "Files or zoo:NAME; the captured graphs unless given");
  app.add_flag("--six", settings.six, "Of the captured graphs, those that the prototype ran on");
  app.add_option("--clusters", settings.clusters, "a, b, c, presets or cluster files")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--placer", settings.placer, "What is measured")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "For each run")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", settings.threads, "Of each run")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--seeds", settings.seeds, "Runs of each case")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--first-seed", settings.first_seed)->capture_default_str();
  app.add_flag("--processor-time", settings.processor_time,
               "The seconds are of processor time: for machines that others use, too; one thread");
  app.add_option("--jobs", settings.jobs, "Runs side by side; each has its own threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--uneven", settings.uneven,
                 "So many graphs of uneven work with dear transfers, made from seeds, in place of "
                 "others")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--first-uneven", settings.first_uneven, "The seed of the first of them")
      ->capture_default_str();
  app.add_option("--evaluations", settings.evaluations,
                 "For each run, in place of the time: for machines that others use, too")
      ->check(CLI::PositiveNumber);
  app.add_option("--scheduler", settings.scheduler, "own, fifo, pct or msr")->capture_default_str();
  app.add_option("--against", settings.against,
                 "Also run these searches, with the same seeds, for as long: all, families, specs");
  app.add_option("--json", settings.json, "Write everything here")->type_name("FILE");
  app.footer(
      "Example: search --six --clusters a,b,c --seconds 30 --seeds 3 --jobs 8 --json out.json");
  CLI11_PARSE(app, argc, argv);
  try {
    run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "search: {}\n", error.what());
    return 2;
  }
  return 0;
}
