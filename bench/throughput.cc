// The stream search against the best published period of each dnn-partitioning workload (Tarnawski
// et al., NeurIPS 2020): devices pay for communication, memory is respected, CPUs may be used.
//
//   build/bench/throughput [FILE...] [--seconds 10] [--seeds 5] [--threads 1]
//
// Without files, those of ../shared/data/peers/dnn-partitioning/throughput beside the repository.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/units.h"

#include "placer/bound.h"

#include "placers/stream/search.h"

#include "io/readers.h"

namespace {

using namespace emplace;

constexpr const char* kFolder = "../shared/data/peers/dnn-partitioning/throughput";

// The best period that any other method has been reported to find, in ms, whether it respects
// memory or not.
struct Published {
  std::string_view workload;  // the end of the file's path
  double best_ms;
};

constexpr Published kPublished[] = {
    {"layer/bert24_inference.json", 17.715},       {"layer/bert24_training.json", 39.94},
    {"layer/resnet50_inference.json", 33.77},      {"layer/resnet50_training.json", 78.63},
    {"operator/bert_l-3_inference.json", 21.908},  {"operator/bert_l-3_training.json", 54.207},
    {"operator/bert_l-12_inference.json", 147.48}, {"operator/resnet50_inference.json", 124.349},
};

std::optional<double> published_best(std::string_view path) {
  for (const Published& entry : kPublished) {
    if (path.ends_with(entry.workload)) return entry.best_ms;
  }
  return std::nullopt;
}

std::vector<std::string> files_beside() {
  std::vector<std::string> files;
  if (!std::filesystem::exists(kFolder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

double ms(Nanoseconds time) {
  return static_cast<double>(time) / 1e6;
}

struct Setting {
  double seconds = 10;
  std::uint64_t seeds = 5;
  int threads = 1;
};

void run(const std::string& path, const Setting& setting) {
  const Model model = read_model(path);
  if (model.cluster == nullptr) {
    fmt::print("{}: says nothing of devices; skipped\n", path);
    return;
  }
  const auto problem = compile(model.graph, model.cluster);
  const StreamModel stream(*problem, Overlap::kNone);
  const Nanoseconds bound = period_lower_bound(*problem).step;
  fmt::print("{}: {} items, {} nets, {} devices\n", path, stream.num_items(), stream.num_nets(),
             stream.num_devices());
  std::vector<Nanoseconds> periods;
  for (std::uint64_t seed = 1; seed <= setting.seeds; ++seed) {
    Budget budget;
    budget.seconds = setting.seconds;
    double last = 0;
    const StreamSolution found =
        search_stream(stream, {.seed = seed, .threads = setting.threads}, budget, bound, {},
                      [&](const StreamSolution&) { last = budget.elapsed_seconds(); });
    fmt::print("  seed {}: {:>10.4f} ms, found after {:.2f} s{}\n", seed, ms(found.period), last,
               found.overflow == 0 ? "" : ", does not fit");
    periods.push_back(found.period);
  }
  std::sort(periods.begin(), periods.end());
  const double median = ms(periods[periods.size() / 2]);
  fmt::print("  median {:.4f} ms, {:.4f} x simple bound", median, median / ms(bound));
  if (const auto published = published_best(path)) {
    fmt::print(", {:.4f} x published best ({} ms)", median / *published, *published);
  }
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The stream search on dnn-partitioning workloads.");
  std::vector<std::string> files;
  Setting setting;
  app.add_option("files", files, "Workloads");
  app.add_option("--seconds", setting.seconds, "Per seed")->check(CLI::PositiveNumber);
  app.add_option("--seeds", setting.seeds, "How many")->check(CLI::PositiveNumber);
  app.add_option("--threads", setting.threads, "Per search")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    if (files.empty()) files = files_beside();
    if (files.empty()) {
      fmt::print(stderr, "no files given, and none in {}\n", kFolder);
      return 2;
    }
    for (const std::string& file : files) run(file, setting);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
