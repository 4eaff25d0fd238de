// Scotch maps the graph of groups onto the graph of devices, by recursive bisection of both, so
// that devices get their shares of the work and edges cost bytes times distance (Pellegrini and
// Roman, HPCN 1996). A heuristic; near linear. Here its input is made: weights are scaled into 32
// bits with room for their sums, devices of equal distance are a complete weighted architecture,
// others a graph whose edges are whole multiples of the shortest.
//
// Scotch keeps one random state for the process and gives other results with several threads: so it
// runs under a mutex, in a context of one thread, from a seed that is drawn from the placer's
// numbers. Same seed, same result.
#include "placers/common/scotch_map.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>

#include <scotch.h>

#include "base/error.h"

namespace emplace {
namespace {

static_assert(sizeof(SCOTCH_Num) == 4, "weights are scaled for 32-bit Scotch");

// Scotch multiplies loads by distances while it adds them up.
constexpr std::int64_t kLoadLimit = std::int64_t{1} << 28;
constexpr double kShareUnit = 1000;
constexpr double kLargestDistance = 64;

// Building an architecture draws from Scotch's one random state.
std::mutex& scotch_mutex() {
  static std::mutex mutex;
  return mutex;
}

void check(int status, const char* what) {
  if (status != 0) fail(ErrorKind::kSystem, "Scotch failed: {} (status {})", what, status);
}

// Scotch's structures end as they began: by a call.
template <class Handle, int (*kInit)(Handle*), void (*kExit)(Handle*)>
class Scoped {
 public:
  Scoped() { check(kInit(&handle_), "could not start a structure"); }
  ~Scoped() { kExit(&handle_); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;
  Handle* get() { return &handle_; }

 private:
  Handle handle_;
};

using ScotchGraph = Scoped<SCOTCH_Graph, SCOTCH_graphInit, SCOTCH_graphExit>;
using ScotchArch = Scoped<SCOTCH_Arch, SCOTCH_archInit, SCOTCH_archExit>;
using ScotchStrategy = Scoped<SCOTCH_Strat, SCOTCH_stratInit, SCOTCH_stratExit>;

// Where a mapping runs: in one thread, with random numbers of its own, since with more threads
// Scotch gives other results in every run.
class ScotchContext {
 public:
  explicit ScotchContext(SCOTCH_Num seed) {
    check(SCOTCH_contextInit(&context_), "could not start a context");
    const bool ready =
        SCOTCH_contextOptionSetNum(&context_, SCOTCH_OPTIONNUMDETERMINISTIC, 1) == 0 &&
        SCOTCH_contextRandomClone(&context_) == 0 &&
        SCOTCH_contextThreadSpawn(&context_, 1, nullptr) == 0;
    if (!ready) SCOTCH_contextExit(&context_);
    check(ready ? 0 : 1, "could not set up a context");
    SCOTCH_contextRandomSeed(&context_, seed);
    SCOTCH_contextRandomReset(&context_);
  }
  ~ScotchContext() { SCOTCH_contextExit(&context_); }
  ScotchContext(const ScotchContext&) = delete;
  ScotchContext& operator=(const ScotchContext&) = delete;

  // `bound` must end before the context and `graph` do.
  void bind(ScotchGraph& graph, ScotchGraph& bound) {
    check(SCOTCH_contextBindGraph(&context_, graph.get(), bound.get()),
          "could not bind a graph to a context");
  }

 private:
  SCOTCH_Context context_;
};

// The arrays that a Scotch graph points into.
struct Arrays {
  std::vector<SCOTCH_Num> offsets;
  std::vector<SCOTCH_Num> neighbours;
  std::vector<SCOTCH_Num> vertex_loads;
  std::vector<SCOTCH_Num> edge_loads;

  void build(ScotchGraph& graph) {
    check(SCOTCH_graphBuild(graph.get(), 0, static_cast<SCOTCH_Num>(vertex_loads.size()),
                            offsets.data(), offsets.data() + 1, vertex_loads.data(), nullptr,
                            static_cast<SCOTCH_Num>(neighbours.size()), neighbours.data(),
                            edge_loads.data()),
          "could not build a graph");
  }
};

Arrays arrays_of(const CoarseGraph& graph) {
  Arrays arrays;
  arrays.offsets.assign(graph.offsets.begin(), graph.offsets.end());
  arrays.neighbours.assign(graph.neighbours.begin(), graph.neighbours.end());
  arrays.vertex_loads = scale_weights(graph.durations, kLoadLimit);
  const bool no_time = std::all_of(arrays.vertex_loads.begin(), arrays.vertex_loads.end(),
                                   [](SCOTCH_Num load) { return load == 0; });
  if (no_time) std::fill(arrays.vertex_loads.begin(), arrays.vertex_loads.end(), 1);
  arrays.edge_loads = scale_weights(graph.edge_bytes, kLoadLimit);
  // Scotch refuses edges without a load.
  for (SCOTCH_Num& load : arrays.edge_loads) load = std::max(load, 1);
  return arrays;
}

std::vector<SCOTCH_Num> device_loads(const std::vector<double>& shares) {
  const double smallest = *std::min_element(shares.begin(), shares.end());
  const double largest = *std::max_element(shares.begin(), shares.end());
  // Equal devices get 1 each; else the largest gets kShareUnit.
  const double unit = smallest == largest ? 1 : kShareUnit;
  std::vector<SCOTCH_Num> loads;
  for (const double share : shares) {
    loads.push_back(std::max(1, static_cast<SCOTCH_Num>(std::lround(share / largest * unit))));
  }
  return loads;
}

bool equally_far(const ScotchTarget& target) {
  const std::size_t size = target.shares.size();
  if (target.distances.empty() || size <= 2) return true;
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = 0; b < size; ++b) {
      if (a != b && target.distances[a * size + b] != target.distances[1]) return false;
    }
  }
  return true;
}

// A complete graph of devices whose edges are as long as a byte takes, in units of the shortest.
Arrays device_graph(const ScotchTarget& target) {
  const std::size_t size = target.shares.size();
  double shortest = std::numeric_limits<double>::max();
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = 0; b < size; ++b) {
      if (a != b) shortest = std::min(shortest, target.distances[a * size + b]);
    }
  }
  Arrays arrays;
  arrays.vertex_loads = device_loads(target.shares);
  arrays.offsets.push_back(0);
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = 0; b < size; ++b) {
      if (a == b) continue;
      const double length = std::min(target.distances[a * size + b] / shortest, kLargestDistance);
      arrays.neighbours.push_back(static_cast<SCOTCH_Num>(b));
      arrays.edge_loads.push_back(static_cast<SCOTCH_Num>(std::lround(length)));
    }
    arrays.offsets.push_back(static_cast<SCOTCH_Num>(arrays.neighbours.size()));
  }
  return arrays;
}

void build_architecture(const ScotchTarget& target, ScotchArch& arch) {
  if (equally_far(target)) {
    const std::vector<SCOTCH_Num> loads = device_loads(target.shares);
    check(SCOTCH_archCmpltw(arch.get(), static_cast<SCOTCH_Num>(loads.size()), loads.data()),
          "could not describe the devices");
    return;
  }
  Arrays arrays = device_graph(target);
  ScotchGraph graph;
  arrays.build(graph);
  ScotchStrategy strategy;
  check(SCOTCH_archBuild0(arch.get(), graph.get(), 0, nullptr, strategy.get()),
        "could not describe the devices and their links");
}

}  // namespace

std::vector<std::int32_t> scotch_map(const CoarseGraph& graph, const ScotchTarget& target,
                                     double imbalance, Rng rng) {
  std::vector<SCOTCH_Num> parts(graph.size(), 0);
  if (target.shares.size() <= 1 || graph.size() <= 1) return parts;
  const std::lock_guard lock(scotch_mutex());
  const auto seed = static_cast<SCOTCH_Num>(rng.below(1U << 30));
  SCOTCH_randomSeed(seed);
  SCOTCH_randomReset();

  ScotchArch arch;
  build_architecture(target, arch);
  Arrays arrays = arrays_of(graph);
  ScotchGraph source;
  arrays.build(source);
  ScotchContext context(seed);
  ScotchGraph bound;
  context.bind(source, bound);
  ScotchStrategy strategy;
  check(SCOTCH_stratGraphMapBuild(strategy.get(), SCOTCH_STRATDEFAULT,
                                  static_cast<SCOTCH_Num>(target.shares.size()), imbalance),
        "could not build a strategy");
  check(SCOTCH_graphMap(bound.get(), arch.get(), strategy.get(), parts.data()),
        "could not map the graph");
  return parts;
}

}  // namespace emplace
