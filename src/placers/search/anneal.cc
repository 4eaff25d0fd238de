// Simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 1983) with geometric cooling.
//
// Large graphs are annealed at several scales, first a few clusters of groups, then ever smaller
// ones, each from the best placement so far: much moves early, and the order of the large decisions
// is settled before small ones hide it. The temperature at the beginning of a scale falls with the
// root of the number of clusters, as what one of them can change does; it falls by a factor of
// `cooling` until the end of the scale.
#include <algorithm>
#include <cmath>

#include "placer/placer.h"

#include "placers/local/chains.h"
#include "placers/local/frame.h"
#include "placers/local/starts.h"
#include "placers/local/walk.h"

namespace emplace {
namespace {

constexpr std::uint32_t kFewestClusters = 64;
constexpr std::uint32_t kScale = 8;  // times as many clusters at the next
// How often a graph is annealed that is so small that it has one scale.
constexpr std::size_t kSmallRounds = 8;

class Anneal final : public Placer {
 public:
  struct Options {
    double temperature = 0.04;
    double cooling = 20;
    std::int64_t chains = 1;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .real("temperature", &Options::temperature, 0, 1000,
              "At first, as a share of the step time, for one cluster; falls with their root.")
        .real("cooling", &Options::cooling, 1, 1e9, "How many times as cold a scale ends.")
        .integer("chains", &Options::chains, 1, 64, "Independent runs, from different starts.");
  }
  explicit Anneal(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

class AnnealChain final : public Chain {
 public:
  AnnealChain(Evaluator& evaluator, const CoarseGraph& graph, const Solution& start,
              const Anneal::Options& options, const SearchPart& part, Rng rng)
      : walk_(evaluator, graph, "anneal", rng), start_(start), options_(options), part_(part) {
    for (std::uint32_t count = kFewestClusters; count < graph.size(); count *= kScale) {
      clusters_.push_back(count);
    }
    const std::size_t fine = clusters_.empty() ? kSmallRounds : 1;
    clusters_.insert(clusters_.end(), fine, std::max<std::uint32_t>(1, graph.size()));
  }

  void advance(const Turn& turn) override {
    walk_.begin(turn);
    if (!walk_.started()) walk_.go_to(start_);
    const double progress = part_.of_whole(turn.progress);
    const double at = progress * static_cast<double>(clusters_.size());
    const auto scale = std::min(static_cast<std::size_t>(at), clusters_.size() - 1);
    if (scale_ != scale) begin_scale(scale);
    const double within = std::min(1.0, at - static_cast<double>(scale));
    const double step = static_cast<double>(walk_.best().value.step);
    const double temperature = step * options_.temperature /
                               std::sqrt(static_cast<double>(clusters_[scale])) *
                               std::pow(options_.cooling, -within);
    while (walk_.more()) walk_.step(temperature);
  }
  bool finished() const override { return false; }
  const Solution* best() const override { return walk_.started() ? &walk_.best() : nullptr; }

 private:
  void begin_scale(std::size_t scale) {
    scale_ = scale;
    walk_.return_to_best();
    walk_.cluster(clusters_[scale]);
    walk_.focus();
  }

  Walk walk_;
  Solution start_;
  const Anneal::Options& options_;
  SearchPart part_;
  std::vector<std::uint32_t> clusters_;  // by scale
  std::optional<std::size_t> scale_;
};

PlaceResult Anneal::place(PlaceContext& context, const Budget& given, Rng rng) {
  const Problem& problem = context.problem();
  const Budget budget = given.or_default();
  begin_search(context);
  const std::size_t count = chain_count(problem, options_.chains);
  const std::vector<Solution> starts = classical_starts(context, budget, rng.split(0), count);
  return search_by_chains(context, budget, count, [&](const CoarseGraph& graph, std::size_t i) {
    return std::make_unique<AnnealChain>(context.evaluator(), graph, starts[i % starts.size()],
                                         options_, context.part(), rng.split(1 + i));
  });
}

}  // namespace

EMPLACE_PLACER(anneal, Anneal, .family = "search",
               .summary = "Simulated annealing, from a few large clusters of ops to single groups.",
               .reference = "Kirkpatrick, Gelatt, Vecchi, Science 1983", .randomized = true)

}  // namespace emplace
