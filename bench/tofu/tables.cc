#include "tofu/tables.h"

#include <fstream>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace emplace::tofu {
namespace {

using Json = nlohmann::ordered_json;

std::string samples(const Trial* trial, int decimals = 0) {
  if (trial == nullptr) return "";
  if (!trial->fits) return "OOM";
  const double rate = trial->samples_per_second();
  return fmt::format("{:.{}f} ({})", rate, rate < 10 ? 2 : decimals, trial->batch);
}

std::string gib(Bytes bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 30));
}

void print_throughput(const Rows& rows, const Machine& machine) {
  const std::vector<std::string> columns{"ideal", "small-batch", "swap",  "expert",
                                         "auto",  "tofu",        "search"};
  fmt::print("\n{}: samples a second (batch, of one device in the first three)\n\n",
             machine.cluster);
  fmt::print(
      "| model | ideal | small batch | swap | ops: expert | ops: auto | tofu | search | tofu of "
      "ideal | published: tofu | ops: MXNet | ops: TensorFlow "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const GridModel& model : grid_models()) {
    std::string line = "| " + model.name;
    bool any = false;
    for (const std::string& column : columns) {
      const Trial* trial = rows.find({"throughput", machine.name, model.name, column});
      any = any || trial != nullptr;
      line += " | " + samples(trial);
    }
    if (!any) continue;
    const Trial* ideal = rows.find({"throughput", machine.name, model.name, "ideal"});
    const Trial* tofu = rows.find({"throughput", machine.name, model.name, "tofu"});
    const bool both = ideal != nullptr && tofu != nullptr && ideal->fits && tofu->fits;
    line += both ? fmt::format(" | {:.0f} %",
                               100 * tofu->samples_per_second() / ideal->samples_per_second())
                 : " | ";
    const Published known = machine.name == "k80" ? published(model.name) : Published{};
    line += known.tofu > 0 ? fmt::format(" | {:.0f} | {:.0f} | {:.0f}", known.tofu,
                                         known.op_placement, known.tensorflow_op_placement)
                           : " | | | ";
    fmt::print("{} |\n", line);
  }
}

void print_memory(const Rows& rows, const Machine& machine) {
  fmt::print("\n{}: GiB that the fullest device holds, by what is in place\n\n", machine.cluster);
  fmt::print(
      "| model, batch | one device: none | sums | all | tofu on eight: none | sums | all "
      "|\n|---|---:|---:|---:|---:|---:|---:|\n");
  for (const GridModel& model : grid_models()) {
    std::string line = fmt::format("| {}, {}", model.name, model.memory_batch);
    bool any = false;
    for (const char* column : {"ideal", "tofu"}) {
      for (const char* mode : {"none", "sums", "all"}) {
        const Trial* trial =
            rows.find({"memory", machine.name, model.name, fmt::format("{} {}", column, mode)});
        any = any || trial != nullptr;
        line += " | " + (trial == nullptr ? "" : gib(trial->peak));
      }
    }
    if (any) fmt::print("{} |\n", line);
  }
}

void print_rivals(const Rows& rows, const Machine& machine) {
  const std::vector<std::string> methods = rival_methods();
  fmt::print(
      "\n{}: step in ms / GiB moved / seconds of processor time for the plan, at the best batch of "
      "Tofu's\n\n| model |",
      machine.cluster);
  for (const std::string& method : methods) fmt::print(" {} |", method);
  fmt::print("\n|---|");
  for (std::size_t i = 0; i < methods.size(); ++i) fmt::print("---:|");
  fmt::print("\n");
  for (const GridModel& model : grid_models()) {
    std::string line = "| " + model.name;
    bool any = false;
    for (const std::string& method : methods) {
      const Trial* trial = rows.find({"rivals", machine.name, model.name, method});
      any = any || trial != nullptr;
      line += " | ";
      if (trial == nullptr) continue;
      line += fmt::format("{:.0f} / {} / {:.1f}{}", static_cast<double>(trial->step) / 1e6,
                          gib(trial->moved), trial->search_seconds, trial->fits ? "" : " OOM");
    }
    if (any) fmt::print("{} |\n", line);
  }
}

void print_times(const Rows& rows, const Machine& machine) {
  fmt::print(
      "\n{}: seconds of processor time for Tofu's plan\n\n| model | how | classes of ops | seconds "
      "| GiB by Tofu's costs |\n|---|---|---:|---:|---:|\n",
      machine.cluster);
  for (const GridModel& model : grid_models()) {
    for (const char* how : {"coarsened, level by level", "as it is, level by level",
                            "coarsened, all levels at once", "as it is, all levels at once"}) {
      const Trial* trial = rows.find({"times", machine.name, model.name, how});
      if (trial == nullptr) continue;
      fmt::print("| {} | {} | {} | {}{:.2f} | {} |\n", model.name, how, trial->batch,
                 trial->fits ? "" : "> ", trial->search_seconds,
                 trial->moved > 0 ? gib(trial->moved) : "");
    }
  }
}

void print_small(const Rows& rows, const Machine& machine) {
  fmt::print(
      "\n{}: models that fit one device, samples a second (batch)\n\n| model | eight of one device "
      "| data-parallel | tofu | search |\n|---|---:|---:|---:|---:|\n",
      machine.cluster);
  for (const GridModel& model : small_models()) {
    std::string line = "| " + model.name;
    for (const char* column : {"small-batch", "data-parallel", "tofu", "search"}) {
      constexpr int kDecimals = 1;  // what is compared lies close together
      line += " | " + samples(rows.find({"small", machine.name, model.name, column}), kDecimals);
    }
    fmt::print("{} |\n", line);
  }
}

}  // namespace

Rows::Rows(std::string path) : path_(std::move(path)) {
  std::ifstream file(path_);
  std::string line;
  while (std::getline(file, line)) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded() || !json.contains("part")) {
      fail_input("{}: '{}': expected a row of this program", path_, line);
    }
    Trial trial{.batch = json.at("batch"),
                .replicas = json.at("replicas"),
                .step = json.at("step_ns"),
                .moved = json.at("moved"),
                .peak = json.at("peak"),
                .fits = json.at("fits"),
                .search_seconds = json.at("search_seconds")};
    rows_[{json.at("part"), json.at("machine"), json.at("model"), json.at("column")}] = trial;
  }
}

void Rows::add(const RowKey& key, const std::function<Trial()>& compute) {
  if (rows_.contains(key)) return;
  const Trial trial = compute();
  rows_[key] = trial;
  const Json json{{"part", key.part},
                  {"machine", key.machine},
                  {"model", key.model},
                  {"column", key.column},
                  {"batch", trial.batch},
                  {"replicas", trial.replicas},
                  {"step_ns", trial.step},
                  {"moved", trial.moved},
                  {"peak", trial.peak},
                  {"fits", trial.fits},
                  {"search_seconds", trial.search_seconds}};
  std::ofstream file(path_, std::ios::app);
  file << json.dump() << '\n';
  file.flush();
  if (!file) fail_input("{}: cannot be written", path_);
}

const Trial* Rows::find(const RowKey& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

void print_tables(const Rows& rows) {
  for (const Machine& machine : machines()) {
    print_throughput(rows, machine);
    print_memory(rows, machine);
    print_rivals(rows, machine);
    print_times(rows, machine);
    print_small(rows, machine);
  }
}

}  // namespace emplace::tofu
