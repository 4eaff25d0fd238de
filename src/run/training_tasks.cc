#include "run/training_tasks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"
#include "base/options.h"
#include "base/parallel.h"

#include "sim/simulator.h"

#include "io/model_formats.h"
#include "io/readers.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

// Of memory, over what an even spread needs.
constexpr double kRoom = 1.3;

// At spaces, and at commas that do not separate the options of a zoo model; what there is of this
// name is taken whole.
std::vector<std::string> split(const std::string& text) {
  std::error_code ignored;
  if (fs::exists(text, ignored)) return {text};
  std::vector<std::string> result;
  std::string part;
  const auto end_part = [&] {
    if (!part.empty()) result.push_back(part);
    part.clear();
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ' ') {
      end_part();
    } else if (c == ',') {
      // An option has '=' before the next separator.
      const std::size_t equals = text.find('=', at);
      const bool option = zoo::is_zoo_name(part) && part.find('=') != std::string::npos &&
                          equals != std::string::npos && equals < text.find_first_of(":, ", at + 1);
      if (option) {
        part += c;
      } else {
        end_part();
      }
    } else {
      part += c;
    }
  }
  end_part();
  return result;
}

// "…seed=0..31…" as 32 names.
void add_range(const std::string& name, std::vector<std::string>& result) {
  const std::size_t dots = name.find("..");
  if (!zoo::is_zoo_name(name) || dots == std::string::npos) {
    result.push_back(name);
    return;
  }
  const std::size_t equals = name.rfind('=', dots);
  std::size_t end = name.find(',', dots);
  if (end == std::string::npos) end = name.size();
  if (equals == std::string::npos) {
    fail_option("{}: expected a range of an option, such as seed=0..31", name);
  }
  constexpr std::int64_t kLargest = 1'000'000;
  const std::int64_t first =
      read_integer(name, name.substr(equals + 1, dots - equals - 1), 0, kLargest);
  const std::int64_t last = read_integer(name, name.substr(dots + 2, end - dots - 2), 0, kLargest);
  if (last < first || last - first > 100'000) {
    fail_option("{}: expected a range from a smaller to a larger number", name);
  }
  for (std::int64_t value = first; value <= last; ++value) {
    result.push_back(fmt::format("{}{}{}", name.substr(0, equals + 1), value, name.substr(end)));
  }
}

void add_folder(const std::string& folder, std::vector<std::string>& result) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && has_model_ending(entry.path().filename().string()))
      found.push_back(entry.path());
  }
  if (found.empty()) fail_input("{}: has no model file (.json, .onnx, also gzipped)", folder);
  std::sort(found.begin(), found.end());
  result.insert(result.end(), found.begin(), found.end());
}

Bytes needed_on_one(const std::shared_ptr<const Problem>& problem) {
  const Simulator simulator(problem);
  const auto workspace = simulator.make_workspace();
  std::vector<Bytes> peaks(problem->num_devices());
  simulator.evaluate(Placement(problem->num_ops(), 0), ReadyOrder(), *workspace, peaks);
  return peaks.front();
}

std::shared_ptr<const Problem> with_memory(const Problem& problem, Bytes memory,
                                           std::shared_ptr<const Graph> graph) {
  ClusterSpec spec = problem.cluster().spec();
  for (Device& device : spec.devices) device.memory = memory;
  return compile(std::move(graph), std::make_shared<const Cluster>(std::move(spec)));
}

}  // namespace

std::vector<std::string> list_models(const std::vector<std::string>& texts) {
  std::vector<std::string> result;
  for (const std::string& text : texts) {
    for (const std::string& name : split(text)) {
      if (!zoo::is_zoo_name(name) && fs::is_directory(name)) {
        add_folder(name, result);
      } else {
        add_range(name, result);
      }
    }
  }
  if (result.empty()) fail_option("graphs: expected at least one");
  return result;
}

std::vector<std::string> list_clusters(const std::vector<std::string>& texts) {
  std::vector<std::string> result;
  for (const std::string& text : texts) {
    for (const std::string& name : split(text)) result.push_back(name);
  }
  if (result.empty()) fail_option("clusters: expected at least one");
  return result;
}

std::vector<NamedProblem> cross(const std::vector<std::string>& models,
                                const std::vector<std::string>& clusters,
                                const std::vector<double>& memory_shares, int threads) {
  constexpr double kMostMemory = 1e6;
  for (const double share : memory_shares) {
    if (share > 0 && share <= kMostMemory) continue;
    fail_option("memory {}: expected a share above 0, of what a graph needs, and {} at most", share,
                kMostMemory);
  }
  std::vector<std::shared_ptr<const Cluster>> machines;
  for (const std::string& name : clusters) machines.push_back(read_cluster(name));
  std::vector<std::vector<NamedProblem>> by_model(models.size());
  parallel_for(models.size(), threads, [&](std::size_t i) {
    const std::shared_ptr<const Graph> graph = read_model(models[i]).graph;
    for (std::size_t c = 0; c < machines.size(); ++c) {
      const std::string name = fmt::format("{} on {}", models[i], clusters[c]);
      const auto problem = with_context(models[i], [&] { return compile(graph, machines[c]); });
      if (memory_shares.empty()) {
        by_model[i].push_back({name, problem});
        continue;
      }
      const auto needed = static_cast<double>(needed_on_one(problem));
      for (const double share : memory_shares) {
        const double least = kRoom / static_cast<double>(problem->num_devices());
        const double memory = std::ceil(std::max(share, least) * needed);
        by_model[i].push_back({fmt::format("{} with {:.0f} % of its memory", name, share * 100),
                               with_memory(*problem, static_cast<Bytes>(memory), graph)});
      }
    }
  });
  std::vector<NamedProblem> result;
  for (auto& problems : by_model) {
    result.insert(result.end(), problems.begin(), problems.end());
  }
  return result;
}

}  // namespace emplace
