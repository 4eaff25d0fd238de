// Tofu's evaluation (Wang et al., EuroSys 2019) on the simulator: see docs/results/tofu.md.
//
//   build/bench/tofu --rows FILE [--machines k80,k80-tree,v100] [--models RNN-6-4K,...] [--columns tofu,...]
//       [--parts throughput,memory,rivals,times,small] [--plans N] [--placements N] [--seconds S]
//       [--limit S] [--print]
//
// Rows that FILE has already are not computed again; --print only prints the tables of what is
// there.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"

#include "graph/in_place.h"

#include "tofu/columns.h"
#include "tofu/tables.h"

namespace {

using namespace emplace;
using namespace emplace::tofu;

struct Arguments {
  std::string rows;
  std::vector<std::string> machines{"k80", "v100"};
  std::vector<std::string> models;
  std::vector<std::string> columns{"ideal", "small-batch", "swap",  "expert",
                                   "auto",  "tofu",        "search"};
  std::vector<std::string> parts{"memory", "throughput", "rivals", "times", "small"};
  std::int64_t plans = 8;
  std::int64_t placements = 1000;
  double seconds = 25;
  double limit = 60;
  bool print = false;
};

bool among(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

class Runner {
 public:
  explicit Runner(const Arguments& arguments)
      : arguments_(arguments),
        rows_(arguments.rows),
        settings_{.plans = arguments.plans,
                  .placements = arguments.placements,
                  .seconds = arguments.seconds} {}

  void run() {
    for (const Machine& machine : machines()) {
      if (!among(arguments_.machines, machine.name)) continue;
      if (among(arguments_.parts, "memory")) measure_memory(machine);
      if (among(arguments_.parts, "throughput")) compare(machine);
      if (among(arguments_.parts, "rivals")) compare_rivals(machine);
      if (among(arguments_.parts, "times")) time_searches(machine);
      if (among(arguments_.parts, "small")) compare_small(machine);
    }
  }

  const Rows& rows() const { return rows_; }

 private:
  std::vector<GridModel> models() const {
    std::vector<GridModel> chosen;
    for (const GridModel& model : grid_models()) {
      if (among(arguments_.models, model.name)) chosen.push_back(model);
    }
    return chosen;
  }

  void measure_memory(const Machine& machine) {
    for (const GridModel& model : models()) {
      for (const char* column : {"ideal", "tofu"}) {
        for (const InPlace mode : {InPlace::kNone, InPlace::kSums, InPlace::kAll}) {
          rows_.add({"memory", machine.name, model.name,
                     fmt::format("{} {}", column, in_place_name(mode))},
                    [&] {
                      Settings settings = settings_;
                      settings.in_place = mode;
                      return try_batch(model, machine, column, model.memory_batch, settings);
                    });
        }
      }
    }
  }

  Trial best(const GridModel& model, const Machine& machine, const std::string& column) {
    const bool one = column == "small-batch" || column == "ideal" || column == "swap";
    std::int64_t first = one ? 1 : 8;
    // The ideal has no limit of memory, and so every batch that others have.
    std::int64_t most = one && column != "ideal" ? model.most / 4 : model.most;
    // Searches begin at the batch that is best for their rivals. Placements stay there, or below,
    // where the expert's fits.
    if (column == "auto") {
      first = batch_of(model, machine, "expert", first);
      most = batch_of(model, machine, "expert", most);
    }
    if (column == "search") first = batch_of(model, machine, "tofu", first);
    const auto at = [&](std::int64_t batch) {
      return try_batch(model, machine, column, batch, settings_);
    };
    const Trial found = best_batch(first, most, at).value_or(Trial{});
    // What fits without swapping counts as well.
    const std::int64_t whole =
        column == "swap" ? batch_of(model, machine, "small-batch", 0) : std::int64_t{0};
    if (whole == 0) return found;
    const Trial unswapped = at(whole);
    return unswapped.samples_per_second() > found.samples_per_second() ? unswapped : found;
  }

  std::int64_t batch_of(const GridModel& model, const Machine& machine, const std::string& column,
                        std::int64_t otherwise) const {
    const Trial* known = rows_.find({"throughput", machine.name, model.name, column});
    return known != nullptr && known->fits ? known->batch : otherwise;
  }

  void compare(const Machine& machine) {
    for (const GridModel& model : models()) {
      for (const std::string& column : arguments_.columns) {
        rows_.add({"throughput", machine.name, model.name, column},
                  [&] { return best(model, machine, column); });
      }
    }
  }

  // At the batch that is best for Tofu's plan.
  void compare_rivals(const Machine& machine) {
    for (const GridModel& model : models()) {
      const std::int64_t batch = batch_of(model, machine, "tofu", 0);
      if (batch == 0) continue;
      for (const std::string& method : rival_methods()) {
        rows_.add({"rivals", machine.name, model.name, method},
                  [&] { return try_batch(model, machine, method, batch, settings_); });
      }
    }
  }

  void time_searches(const Machine& machine) {
    for (const GridModel& model : models()) {
      if (model.name != "WResNet-152-10" && model.name != "RNN-10-8K") continue;
      for (const bool coarsening : {true, false}) {
        for (const bool recursion : {true, false}) {
          const std::string how = fmt::format("{}, {}", coarsening ? "coarsened" : "as it is",
                                              recursion ? "level by level" : "all levels at once");
          rows_.add({"times", machine.name, model.name, how}, [&] {
            const SearchTime time =
                search_time(model, machine, coarsening, recursion, arguments_.limit);
            return Trial{.batch = time.op_classes,
                         .moved = time.cost,
                         .fits = time.seconds.has_value(),
                         .search_seconds = time.seconds.value_or(arguments_.limit)};
          });
        }
      }
    }
  }

  void compare_small(const Machine& machine) {
    for (const GridModel& model : small_models()) {
      for (const std::string column : {"small-batch", "data-parallel", "tofu", "search"}) {
        rows_.add({"small", machine.name, model.name, column}, [&] {
          const std::int64_t first = column == "small-batch" ? 8 : 64;
          return best_batch(first, column == "small-batch" ? model.most / 8 : model.most,
                            [&](std::int64_t batch) {
                              return try_batch(model, machine, column, batch, settings_);
                            })
              .value_or(Trial{});
        });
      }
    }
  }

  const Arguments& arguments_;
  Rows rows_;
  Settings settings_;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Tofu's evaluation on the simulator.");
  app.add_option("--rows", arguments.rows, "File of rows, which grows")->required();
  app.add_option("--machines", arguments.machines, "k80, v100")->delimiter(',');
  app.add_option("--models", arguments.models, "Of the grid; all by default")->delimiter(',');
  app.add_option("--columns", arguments.columns, "Of the throughput table")->delimiter(',');
  app.add_option("--parts", arguments.parts, "memory, throughput, rivals, times, small")
      ->delimiter(',');
  app.add_option("--plans", arguments.plans, "That a search for a division may simulate");
  app.add_option("--placements", arguments.placements, "That a search for a placement may");
  app.add_option("--seconds", arguments.seconds, "That either may take");
  app.add_option("--limit", arguments.limit, "For a search without coarsening or recursion");
  app.add_flag("--print", arguments.print, "Compute nothing");
  CLI11_PARSE(app, argc, argv);
  try {
    Runner runner(arguments);
    if (!arguments.print) runner.run();
    print_tables(runner.rows());
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
