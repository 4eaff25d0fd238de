// METIS: a k-way partition of the groups with little communication between the parts and equal time
// in each. Karypis, Kumar: "A fast and high quality multilevel scheme for partitioning irregular
// graphs", SIAM J. Sci. Comput. 1998. Balances time alone, as the placement papers use it; memory
// where the option says so.
#include <metis.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>

#include "placer/placer.h"
#include "placers/common/coarse_graph.h"
#include "placers/common/linked_devices.h"

namespace emplace {
namespace {

class Metis final : public Placer {
 public:
  struct Options {
    std::string method = "kway";
    double imbalance = 0.03;
    bool memory = false;
  };

  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .choice("method", &Options::method, {"kway", "recursive"},
                "Cut into all parts at once, or in two again and again.")
        .real("imbalance", &Options::imbalance, 0.001, 10,
              "How much of a part's share it may have too much.")
        .flag("memory", &Options::memory, "Balance resident memory as well as time.");
  }

  explicit Metis(const Options& options) : options_(options) {}

  PlaceResult place(const Problem& problem, Evaluator& evaluator, const Budget& budget,
                    Rng rng) override;

 private:
  std::vector<std::int32_t> partition(const Problem& problem, const CoarseGraph& graph,
                                      const std::vector<DeviceId>& devices, Rng rng) const;

  Options options_;
};

// METIS adds up weights in idx_t, which is 32 bits wide in most builds, and doubles them at times.
constexpr std::int64_t kWeightLimit = std::int64_t{1} << 29;

// METIS keeps its random numbers in the C library's one generator.
std::mutex& metis_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::vector<idx_t> to_idx(const std::vector<std::int32_t>& values) {
  return {values.begin(), values.end()};
}

// Shares of memory: capacities, none counted as more than everything needs.
std::vector<double> memory_shares(const Problem& problem, const CoarseGraph& graph,
                                  const std::vector<DeviceId>& devices) {
  double needed = 1;
  for (const Bytes bytes : graph.resident) needed += static_cast<double>(bytes);
  std::vector<double> shares;
  double total = 0;
  for (const DeviceId device : devices) {
    const auto capacity = static_cast<double>(problem.cluster().device(device).memory);
    shares.push_back(std::clamp(capacity, 1.0, needed));
    total += shares.back();
  }
  for (double& share : shares) share /= total;
  return shares;
}

// No weight above the mean part's, as far as the others are too: a group that fills a part by itself
// leaves the balance of the rest to be found, while METIS would look for parts that have no groups
// (and print that it does). All equal where there is nothing to balance.
std::vector<std::int32_t> balanced_weights(std::vector<std::int64_t> values, std::size_t parts) {
  std::vector<std::int64_t> descending = values;
  std::sort(descending.begin(), descending.end(), std::greater<>());
  double rest = 0;
  for (const std::int64_t value : descending) rest += static_cast<double>(value);
  std::int64_t cap = 0;  // (sum of min(value, cap)) / parts
  for (std::size_t above = 0; above < std::min(parts, descending.size()); ++above) {
    const double mean = rest / static_cast<double>(parts - above);
    cap = static_cast<std::int64_t>(std::ceil(mean));
    if (descending[above] <= cap) break;
    rest -= static_cast<double>(descending[above]);
  }
  for (std::int64_t& value : values) value = std::min(value, cap);
  std::vector<std::int32_t> weights = scale_weights(values, kWeightLimit);
  const bool nothing = std::all_of(weights.begin(), weights.end(), [](auto w) { return w == 0; });
  if (nothing) std::fill(weights.begin(), weights.end(), 1);
  return weights;
}

// The fastest, where there are more devices than groups.
std::vector<DeviceId> at_most(const Problem& problem, std::vector<DeviceId> devices,
                              std::size_t count) {
  if (devices.size() <= count) return devices;
  const std::vector<double> durations = total_durations(problem);
  std::stable_sort(devices.begin(), devices.end(),
                   [&](DeviceId a, DeviceId b) { return durations[a] < durations[b]; });
  devices.resize(count);
  std::sort(devices.begin(), devices.end());
  return devices;
}

std::vector<std::int32_t> Metis::partition(const Problem& problem, const CoarseGraph& graph,
                                           const std::vector<DeviceId>& devices, Rng rng) const {
  std::vector<std::vector<std::int32_t>> weights{balanced_weights(graph.durations, devices.size())};
  std::vector<std::vector<double>> shares{speed_shares(problem, devices)};
  if (options_.memory) {
    weights.push_back(balanced_weights(graph.resident, devices.size()));
    shares.push_back(memory_shares(problem, graph, devices));
  }
  auto num_vertices = static_cast<idx_t>(graph.size());
  auto num_parts = static_cast<idx_t>(devices.size());
  auto num_constraints = static_cast<idx_t>(weights.size());
  std::vector<idx_t> vertex_weights;
  for (GroupId group = 0; group < graph.size(); ++group) {
    for (const auto& constraint : weights) vertex_weights.push_back(constraint[group]);
  }
  std::vector<real_t> targets;
  for (std::size_t part = 0; part < devices.size(); ++part) {
    for (const auto& constraint : shares) targets.push_back(static_cast<real_t>(constraint[part]));
  }
  std::vector<idx_t> offsets(graph.offsets.begin(), graph.offsets.end());
  std::vector<idx_t> neighbours(graph.neighbours.begin(), graph.neighbours.end());
  std::vector<idx_t> edge_weights = to_idx(scale_weights(graph.edge_bytes, kWeightLimit));
  std::vector<idx_t> parts(graph.size(), 0);

  idx_t settings[METIS_NOPTIONS];
  METIS_SetDefaultOptions(settings);
  settings[METIS_OPTION_SEED] = static_cast<idx_t>(rng.below(1U << 30));
  settings[METIS_OPTION_UFACTOR] =
      std::max<idx_t>(1, static_cast<idx_t>(std::lround(options_.imbalance * 1000)));
  const auto call =
      options_.method == "kway" ? METIS_PartGraphKway : METIS_PartGraphRecursive;
  idx_t cut = 0;
  const std::lock_guard lock(metis_mutex());
  const int status =
      call(&num_vertices, &num_constraints, offsets.data(), neighbours.data(),
           vertex_weights.data(), nullptr, edge_weights.data(), &num_parts, targets.data(), nullptr,
           settings, &cut, parts.data());
  if (status != METIS_OK) {
    fail(ErrorKind::kSystem, "METIS could not partition graph '{}' into {} parts (status {})",
         problem.graph().name(), num_parts, status);
  }
  return {parts.begin(), parts.end()};
}

PlaceResult Metis::place(const Problem& problem, Evaluator& evaluator, const Budget&, Rng rng) {
  const CoarseGraph graph = build_coarse_graph(problem);
  const std::vector<DeviceId> linked = mutually_linked_devices(problem);
  const std::vector<DeviceId> devices = at_most(
      problem, partition_devices(problem, graph, linked), std::max<std::size_t>(graph.size(), 1));
  std::vector<std::int32_t> parts(graph.size(), 0);
  if (devices.size() > 1 && graph.size() > 1) parts = partition(problem, graph, devices, rng);
  return place_parts(problem, evaluator, graph, parts, devices, linked);
}

}  // namespace

EMPLACE_PLACER(metis, Metis, .family = "partition",
               .summary = "Parts of equal time with the fewest bytes between them.",
               .reference = "Karypis, Kumar, SIAM J. Sci. Comput. 1998", .randomized = true)

}  // namespace emplace
