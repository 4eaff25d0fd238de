// METIS: a k-way partition of the groups with little communication between the parts and equal time
// in each. Karypis, Kumar: "A fast and high quality multilevel scheme for partitioning irregular
// graphs", SIAM J. Sci. Comput. 1998. Balances time alone, as the placement papers use it; memory
// where the option says so.
//
// A heuristic, near linear in the edges. METIS minimises the bytes that are cut, whatever links
// they cross, and knows nothing of order: the simulator says what the placement is worth. Where
// single groups are large, k-way could leave parts empty, and the graph is cut in two again and
// again. METIS uses the C library's random numbers, so calls are made one at a time.
#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>
#include <type_traits>
#include <utility>

#include <metis.h>

#include "placer/linked_devices.h"
#include "placer/placer.h"

#include "placers/common/coarse_graph.h"

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

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

// METIS adds up weights in idx_t, and doubles them at times.
static_assert(std::is_same_v<idx_t, std::int32_t>, "weights are scaled for 32-bit METIS");
constexpr std::int64_t kWeightLimit = std::int64_t{1} << 29;

// METIS keeps its random numbers in the C library's one generator.
std::mutex& metis_mutex() {
  static std::mutex mutex;
  return mutex;
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

// No weight above the mean part's, as far as the others are too: a group that fills a part by
// itself leaves the balance of the rest to be found, while METIS would look for parts that have no
// groups (and print that it does). All equal where there is nothing to balance.
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

// What METIS is given.
struct Weighted {
  std::vector<idx_t> offsets;
  std::vector<idx_t> neighbours;
  std::vector<idx_t> edge_weights;
  std::vector<idx_t> vertex_weights;  // one for each constraint, vertex by vertex
  idx_t constraints = 1;

  std::size_t size() const { return offsets.size() - 1; }
};

class Partition {
 public:
  // `shares` by constraint and part.
  Partition(const Weighted& graph, std::vector<std::vector<double>> shares, double imbalance,
            Rng rng)
      : graph_(graph), shares_(std::move(shares)), parts_(graph.size(), 0) {
    METIS_SetDefaultOptions(settings_);
    settings_[METIS_OPTION_SEED] = static_cast<idx_t>(rng.below(1U << 30));
    settings_[METIS_OPTION_UFACTOR] =
        std::max<idx_t>(1, static_cast<idx_t>(std::lround(imbalance * 1000)));
  }

  bool too_coarse_for_kway() const;
  std::vector<std::int32_t> cut_at_once();
  std::vector<std::int32_t> cut_in_two_repeatedly();

 private:
  std::size_t num_parts() const { return shares_.front().size(); }
  std::vector<idx_t> call(decltype(METIS_PartGraphKway)* method, Weighted& graph,
                          std::vector<real_t> targets);
  void bisect(const std::vector<idx_t>& vertices, std::size_t first_part, std::size_t end_part);
  Weighted induced(const std::vector<idx_t>& vertices);

  const Weighted& graph_;
  std::vector<std::vector<double>> shares_;
  idx_t settings_[METIS_NOPTIONS];
  std::vector<std::int32_t> parts_;
  std::vector<idx_t> new_index_;  // of `induced`, by vertex
};

// Whether one vertex may weigh half as much as two parts should. METIS's k-way method begins with
// repeated bisection and prints complaints when it must cut a side that has no vertices; where
// vertices are small, no side is left without.
bool Partition::too_coarse_for_kway() const {
  for (std::size_t c = 0; c < shares_.size(); ++c) {
    double total = 0;
    double largest = 0;
    for (std::size_t i = c; i < graph_.vertex_weights.size(); i += shares_.size()) {
      total += graph_.vertex_weights[i];
      largest = std::max(largest, static_cast<double>(graph_.vertex_weights[i]));
    }
    std::vector<double> smallest = shares_[c];
    std::nth_element(smallest.begin(), smallest.begin() + 1, smallest.end());
    if (2 * largest > (smallest[0] + smallest[1]) * total) return true;
  }
  return false;
}

std::vector<idx_t> Partition::call(decltype(METIS_PartGraphKway)* method, Weighted& graph,
                                   std::vector<real_t> targets) {
  auto num_vertices = static_cast<idx_t>(graph.size());
  auto num_targets = static_cast<idx_t>(targets.size()) / graph.constraints;
  std::vector<idx_t> parts(graph.size(), 0);
  idx_t cut = 0;
  const std::lock_guard lock(metis_mutex());
  const int status =
      method(&num_vertices, &graph.constraints, graph.offsets.data(), graph.neighbours.data(),
             graph.vertex_weights.data(), nullptr, graph.edge_weights.data(), &num_targets,
             targets.data(), nullptr, settings_, &cut, parts.data());
  if (status != METIS_OK) {
    fail(ErrorKind::kSystem, "METIS could not cut {} groups into {} parts (status {})",
         graph.size(), num_targets, status);
  }
  return parts;
}

std::vector<std::int32_t> Partition::cut_at_once() {
  std::vector<real_t> targets;
  for (std::size_t part = 0; part < num_parts(); ++part) {
    for (const auto& shares : shares_) targets.push_back(static_cast<real_t>(shares[part]));
  }
  Weighted copy = graph_;
  return call(METIS_PartGraphKway, copy, std::move(targets));
}

std::vector<std::int32_t> Partition::cut_in_two_repeatedly() {
  std::vector<idx_t> all(graph_.size());
  std::iota(all.begin(), all.end(), idx_t{0});
  new_index_.assign(graph_.size(), -1);
  bisect(all, 0, num_parts());
  return parts_;
}

void Partition::bisect(const std::vector<idx_t>& vertices, std::size_t first_part,
                       std::size_t end_part) {
  const auto& shares = shares_.front();
  if (end_part - first_part == 1 || vertices.size() <= 1) {
    const auto largest = std::max_element(shares.begin() + static_cast<std::ptrdiff_t>(first_part),
                                          shares.begin() + static_cast<std::ptrdiff_t>(end_part));
    for (const idx_t vertex : vertices) {
      parts_[static_cast<std::size_t>(vertex)] =
          static_cast<std::int32_t>(largest - shares.begin());
    }
    return;
  }
  const std::size_t middle = (first_part + end_part) / 2;
  std::vector<real_t> targets;
  for (const auto& [from, to] : {std::pair{first_part, middle}, std::pair{middle, end_part}}) {
    for (const auto& by_part : shares_) {
      const auto sum = [&](std::size_t a, std::size_t b) {
        return std::accumulate(by_part.begin() + static_cast<std::ptrdiff_t>(a),
                               by_part.begin() + static_cast<std::ptrdiff_t>(b), 0.0);
      };
      targets.push_back(static_cast<real_t>(sum(from, to) / sum(first_part, end_part)));
    }
  }
  Weighted graph = induced(vertices);
  const std::vector<idx_t> side = call(METIS_PartGraphRecursive, graph, std::move(targets));
  std::vector<idx_t> sides[2];
  for (std::size_t i = 0; i < vertices.size(); ++i) sides[side[i]].push_back(vertices[i]);
  bisect(sides[0], first_part, middle);
  bisect(sides[1], middle, end_part);
}

Weighted Partition::induced(const std::vector<idx_t>& vertices) {
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    new_index_[static_cast<std::size_t>(vertices[i])] = static_cast<idx_t>(i);
  }
  Weighted result;
  result.constraints = graph_.constraints;
  result.offsets.push_back(0);
  const auto constraints = static_cast<std::size_t>(graph_.constraints);
  for (const idx_t signed_vertex : vertices) {
    const auto vertex = static_cast<std::size_t>(signed_vertex);
    for (std::size_t c = 0; c < constraints; ++c) {
      result.vertex_weights.push_back(graph_.vertex_weights[vertex * constraints + c]);
    }
    for (auto i = static_cast<std::size_t>(graph_.offsets[vertex]);
         i < static_cast<std::size_t>(graph_.offsets[vertex + 1]); ++i) {
      const idx_t neighbour = new_index_[static_cast<std::size_t>(graph_.neighbours[i])];
      if (neighbour < 0) continue;
      result.neighbours.push_back(neighbour);
      result.edge_weights.push_back(graph_.edge_weights[i]);
    }
    result.offsets.push_back(static_cast<idx_t>(result.neighbours.size()));
  }
  for (const idx_t vertex : vertices) new_index_[static_cast<std::size_t>(vertex)] = -1;
  return result;
}

Weighted weigh(const CoarseGraph& graph, const std::vector<std::vector<std::int32_t>>& weights) {
  Weighted result;
  result.constraints = static_cast<idx_t>(weights.size());
  result.offsets.assign(graph.offsets.begin(), graph.offsets.end());
  result.neighbours.assign(graph.neighbours.begin(), graph.neighbours.end());
  result.edge_weights = scale_weights(graph.edge_bytes, kWeightLimit);
  // METIS fails on edges without a weight.
  for (idx_t& weight : result.edge_weights) weight = std::max<idx_t>(weight, 1);
  for (GroupId group = 0; group < graph.size(); ++group) {
    for (const auto& constraint : weights) result.vertex_weights.push_back(constraint[group]);
  }
  return result;
}

PlaceResult Metis::place(PlaceContext& context, const Budget&, Rng rng) {
  const Problem& problem = context.problem();
  const CoarseGraph graph = build_coarse_graph(problem);
  const std::vector<DeviceId> linked = mutually_linked_devices(problem);
  const std::vector<DeviceId> devices = at_most(problem, partition_devices(problem, graph, linked),
                                                std::max<std::size_t>(graph.size(), 1));
  if (devices.size() <= 1) {
    const std::vector<std::int32_t> one_part(graph.size(), 0);
    return place_parts(problem, context.evaluator(), graph, one_part, devices, linked);
  }
  std::vector<std::vector<std::int32_t>> weights{balanced_weights(graph.durations, devices.size())};
  std::vector<std::vector<double>> shares{speed_shares(problem, devices)};
  if (options_.memory) {
    weights.push_back(balanced_weights(graph.resident, devices.size()));
    shares.push_back(memory_shares(problem, graph, devices));
  }
  const Weighted weighted = weigh(graph, weights);
  Partition partition(weighted, std::move(shares), options_.imbalance, rng);
  const bool kway = options_.method == "kway";
  const bool at_once = kway && !partition.too_coarse_for_kway();
  const auto parts = at_once ? partition.cut_at_once() : partition.cut_in_two_repeatedly();
  PlaceResult result = place_parts(problem, context.evaluator(), graph, parts, devices, linked);
  if (kway && !at_once) {
    result.notes.push_back(
        "some groups are large beside a device's share of the work, so that the graph was cut in "
        "two again and again (method=recursive)");
  }
  return result;
}

}  // namespace

EMPLACE_PLACER(metis, Metis, .family = "partition",
               .summary = "Parts of equal time with the fewest bytes between them.",
               .reference = "Karypis, Kumar, SIAM J. Sci. Comput. 1998", .randomized = true)

}  // namespace emplace
