// One sample's latency on dnn-partitioning workloads (Tarnawski et al., NeurIPS 2020), with the
// file's accelerators and their memory alone: a search against m_topo, m_etf and m_sct, each in its
// best order, and against the critical path of the computation.
//
//   build/bench/peers_latency [FILE...] [--placer auto] [--seconds 30] [--seeds 1] [--threads 2]
//
// Without files, those of ../shared/data/peers/dnn-partitioning/latency beside the repository.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"

#include "placer/ranks.h"

#include "placers/all.h"

#include "io/readers.h"
#include "report/table.h"
#include "support/trials.h"
#include "support/workloads.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

constexpr const char* kFolder = "../shared/data/peers/dnn-partitioning/latency";
constexpr std::array kPeers{"m_topo", "m_etf", "m_sct"};

// What is aimed at beyond the best of the three, and what Baechi's own programs reach at best on
// the workload, with one channel per device for sending and receiving.
struct Aim {
  std::string_view workload;  // the end of the file's path
  double baechi_ms;
  std::optional<double> of_path = {};  // at most so many times the critical path
  std::optional<double> of_peers = {};
};

constexpr Aim kAims[] = {
    {.workload = "layer/bert24_inference.json", .baechi_ms = 96.3, .of_path = 1.05},
    {.workload = "layer/gnmt_inference.json", .baechi_ms = 201.3, .of_path = 1.05},
    {.workload = "operator/bert_l-3_inference.json", .baechi_ms = 234.6, .of_peers = 0.85},
    {.workload = "operator/resnet50_inference.json", .baechi_ms = 567.8, .of_peers = 0.85},
};

const Aim* aim_of(std::string_view path) {
  for (const Aim& aim : kAims) {
    if (path.ends_with(aim.workload)) return &aim;
  }
  return nullptr;
}

struct Settings {
  std::vector<std::string> files;
  std::string placer = "auto";
  double seconds = 30;
  int threads = 2;
  int seeds = 1;
};

// CPUs, which are there to hold what accelerators cannot, take no part in latency.
std::shared_ptr<const Cluster> accelerators_of(const Cluster& cluster) {
  ClusterSpec spec = cluster.spec();
  std::erase_if(spec.devices, [](const Device& device) { return device.kind == "cpu"; });
  return std::make_shared<const Cluster>(std::move(spec));
}

struct Outcome {
  std::string path;
  OpId nodes = 0;
  DeviceId accelerators = 0;
  Nanoseconds critical_path = 0;  // of the computation alone
  std::vector<Answer> peers;      // in the order of kPeers
  std::vector<SearchResult> runs;

  const Evaluation& value() const { return median(runs).run.evaluation; }
  const Answer& best_peer() const {
    return *std::min_element(peers.begin(), peers.end(),
                             [](const Answer& a, const Answer& b) { return a.value < b.value; });
  }
  std::optional<double> of_path() const {
    if (!value().fits()) return std::nullopt;
    return static_cast<double>(value().step) / static_cast<double>(critical_path);
  }
  std::optional<double> of_peers() const {
    if (!value().fits() || !best_peer().value.fits()) return std::nullopt;
    return static_cast<double>(value().step) / static_cast<double>(best_peer().value.step);
  }
};

Outcome measure(const std::string& path, const Settings& settings, const MethodSpec& placer) {
  const Model model = read_model(path);
  if (model.cluster == nullptr) fail_input("{}: says nothing of devices", path);
  const auto problem = compile(model.graph, accelerators_of(*model.cluster));
  const auto simulator = std::make_shared<const Simulator>(problem);
  Outcome outcome{.path = path,
                  .nodes = problem->num_ops(),
                  .accelerators = problem->num_devices(),
                  .peers = {},
                  .runs = {}};
  // All devices are equal, so mean durations are everybody's.
  const std::vector<Nanoseconds> ranks = upward_ranks(*problem, false);
  outcome.critical_path = *std::max_element(ranks.begin(), ranks.end());
  for (const char* peer : kPeers) outcome.peers.push_back(best_order(simulator, {peer, {}}));
  for (int seed = 1; seed <= settings.seeds; ++seed) {
    outcome.runs.push_back(run_search(
        simulator, {placer, static_cast<std::uint64_t>(seed), settings.seconds, settings.threads}));
  }
  return outcome;
}

std::string verdict(const Outcome& outcome) {
  const auto judge = [](std::optional<double> ratio, double limit, const char* what) {
    return fmt::format("{:.2f} x {}: {}", limit, what, ratio && *ratio <= limit ? "yes" : "NO");
  };
  std::string text = judge(outcome.of_peers(), 1, "peers");
  const Aim* aim = aim_of(outcome.path);
  if (aim != nullptr && aim->of_peers) {
    text += ", " + judge(outcome.of_peers(), *aim->of_peers, "peers");
  }
  if (aim != nullptr && aim->of_path) {
    text += ", " + judge(outcome.of_path(), *aim->of_path, "path");
  }
  return text;
}

std::string short_name(const std::string& path) {
  const std::size_t file = path.rfind('/');
  const std::size_t folder = file == std::string::npos ? file : path.rfind('/', file - 1);
  return folder == std::string::npos ? path : path.substr(folder + 1);
}

void print(const std::vector<Outcome>& outcomes, const std::string& placer) {
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"workload"},
               {"nodes", kRight},
               {"k", kRight},
               {"path", kRight},
               {"m_topo", kRight},
               {"m_etf", kRight},
               {"m_sct", kRight},
               {placer, kRight},
               {"/ best of three", kRight},
               {"/ path", kRight},
               {"/ Baechi's own", kRight},
               {"last at", kRight},
               {"at most"}});
  for (const Outcome& one : outcomes) {
    const Aim* aim = aim_of(one.path);
    std::optional<double> of_baechi;
    if (aim != nullptr && one.value().fits()) {
      of_baechi = milliseconds(one.value().step) / aim->baechi_ms;
    }
    table.add({short_name(one.path), fmt::format("{}", one.nodes),
               fmt::format("{}", one.accelerators),
               fmt::format("{:.2f}", milliseconds(one.critical_path)),
               format_value(one.peers[0].value), format_value(one.peers[1].value),
               format_value(one.peers[2].value), format_value(one.value()),
               format_ratio(one.of_peers()), format_ratio(one.of_path()), format_ratio(of_baechi),
               fmt::format("{:.1f} s", median(one.runs).last_improvement()), verdict(one)});
  }
  fmt::print("times in ms, each placer in its best order\n\n{}", table.to_string());
}

void run(Settings settings) {
  if (settings.files.empty()) settings.files = files_below(kFolder, ".json");
  if (settings.files.empty()) fail_option("no files given, and none in {}", kFolder);
  const MethodSpec placer = MethodSpec::parse(settings.placer);
  all_placers().make(placer);
  std::vector<Outcome> outcomes;
  for (const std::string& file : settings.files) {
    outcomes.push_back(measure(file, settings, placer));
  }
  print(outcomes, settings.placer);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Latency on dnn-partitioning workloads, against m_topo, m_etf and m_sct.");
  Settings settings;
  app.add_option("files", settings.files, "Workloads");
  app.add_option("--placer", settings.placer, "What is measured")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "For each run")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", settings.threads, "Of each run")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--seeds", settings.seeds, "Runs of each workload, of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.footer("Example: peers_latency --seconds 30 --seeds 3");
  CLI11_PARSE(app, argc, argv);
  try {
    run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "peers_latency: {}\n", error.what());
    return 2;
  }
  return 0;
}
