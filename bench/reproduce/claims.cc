#include "reproduce/claims.h"

#include <utility>

#include <fmt/format.h>

namespace emplace::bench {
namespace {

using Names = std::vector<std::string>;

// What "equal" leaves room for.
constexpr double kEqual = 0.02;
// Placeto on units that ColocRL can have too, about as many as its paper has of Inception.
const std::string kPlacetoUnits = "grouping=colocrl,units=80,count_stays=true";
// What a paper calls a gain of 15 %.
constexpr double kFifteenPercentLess = 0.85;

// A published system with the settings of one version, and perhaps further ones.
class Systems {
 public:
  explicit Systems(Version version) : paper_(version == Version::kPaper) {}

  std::string operator()(const std::string& key, const std::string& options = "") const {
    std::string inside = paper_ ? "preset=paper" + narrower(key) : "";
    if (!inside.empty() && !options.empty()) inside += ",";
    inside += options;
    return inside.empty() ? key : fmt::format("{}({})", key, inside);
  }

 private:
  // Widths that their papers do not give, or that are out of reach of hours on processors.
  static std::string narrower(const std::string& key) {
    if (key == "colocrl" || key == "spotlight") return ",width=128";
    return key == "mars" ? ",width=128,encoder_width=64" : "";
  }

  bool paper_;
};

Statement equal(const std::string& left, const std::string& right, const Names& on) {
  return {.text = fmt::format("{} is as good as {}", left, right),
          .left = left,
          .right = right,
          .workloads = on,
          .least = 1 - kEqual,
          .most = 1 + kEqual};
}

Statement better(const std::string& left, const std::string& right, const Names& on) {
  return {.text = fmt::format("{} is better than {}", left, right),
          .left = left,
          .right = right,
          .workloads = on};
}

Statement better_by_fifteen(const std::string& left, const std::string& right, const Names& on) {
  Statement statement = better(left, right, on);
  statement.text = fmt::format("{} takes at least 15 % less than {}", left, right);
  statement.most = kFifteenPercentLess;
  return statement;
}

Statement sooner(Measure measure, const std::string& left, const std::string& right,
                 const Names& on, double times) {
  const std::string what = measure == Measure::kEvaluations    ? "fewer placements"
                           : measure == Measure::kAgentSeconds ? "less of its agent's time"
                                                               : "less time with real steps";
  const std::string how = times > 1 ? fmt::format("at least {:g} times ", times) : "";
  return {.text = fmt::format("{} needs {}{} than {}", left, how, what, right),
          .measure = measure,
          .left = left,
          .right = right,
          .workloads = on,
          .most = 1 / times};
}

// On the papers' hardware, then on today's: whether a second device pays off depends on what a
// transfer and a launch cost.
Claim fits_on_one(const Systems& systems, const std::string& key, const std::string& where,
                  const Names& chains) {
  Claim claim{key,
              fmt::format("Nets that fit on one device, on {}: learned = one device; partitioners "
                          "worse",
                          where),
              "ColocRL, HDP",
              {}};
  for (const std::string placer : {"colocrl", "hdp"}) {
    claim.statements.push_back(equal(systems(placer), "single", chains));
  }
  for (const std::string partitioner : {"scotch", "mincut", "metis"}) {
    claim.statements.push_back(better("single", partitioner, chains));
  }
  return claim;
}

const Names& gdp_models() {
  static const Names names{"GDP: RNNLM, 2 layers", "GDP: GNMT, 2 layers",
                           "GDP: Transformer-XL, 2 layers", "GDP: Inception-V3",
                           "GDP: WaveNet 2x18"};
  return names;
}

// On four devices and on eight; of those where GDP is ahead of people, as published.
const Names& gdp_larger_models() {
  static const Names names{"GDP: RNNLM, 4 layers",          "GDP: RNNLM, 8 layers",
                           "GDP: GNMT, 4 layers",           "GDP: Transformer-XL, 4 layers",
                           "GDP: Transformer-XL, 8 layers", "GDP: WaveNet 4x36"};
  return names;
}

// ColocRL's Inception is faster on four GPUs than on one, as published.
Claim fits_on_one_elsewhere(const Systems& systems) {
  const Names hdp{"HDP: ResNet-152", "HDP: RNNLM"};
  const Names inception{"ColocRL: Inception-V3, 4 GPUs"};
  Claim claim{"A1 others",
              "The same of HDP's nets, and that Inception gains by four GPUs",
              "ColocRL, HDP",
              {equal(systems("hdp"), "single", hdp)}};
  for (const std::string partitioner : {"scotch", "mincut"}) {
    claim.statements.push_back(better("single", partitioner, hdp));
  }
  claim.statements.push_back(better(systems("colocrl"), "single", inception));
  claim.statements.push_back(better_by_fifteen(systems("colocrl"), "single", inception));
  return claim;
}

Claim does_not_fit(const Systems& systems) {
  const Names large{"GNMT-4 of 16 words", "Mars: BERT"};
  Claim claim{"A2",
              "Nets that do not fit: learned beats the expert by 15 to 60 %, except at 8 layers",
              "HDP, GDP, Mars",
              {}};
  for (const std::string placer : {"hdp", "gdp", "mars"}) {
    claim.statements.push_back(better(systems(placer), "expert", large));
    claim.statements.push_back(better_by_fifteen(systems(placer), "expert", large));
  }
  for (const std::string placer : {"hdp", "gdp"}) {
    claim.statements.push_back(better(systems(placer), "expert", {"HDP: NMT, 2 layers"}));
    claim.statements.push_back(better("expert", systems(placer), {"HDP: NMT, 8 layers"}));
  }
  return claim;
}

// GDP's paper has human placements ahead at GNMT's eight layers alone.
Claim does_not_fit_elsewhere(const Systems& systems) {
  Claim claim{"A2 others",
              "The same of ColocRL's NMT, of HDP's at 4 layers and of GDP's nets at 4 and 8",
              "ColocRL, HDP, GDP",
              {}};
  const auto both = [&](const std::string& placer, const Names& on) {
    claim.statements.push_back(better(systems(placer), "expert", on));
    claim.statements.push_back(better_by_fifteen(systems(placer), "expert", on));
  };
  both("colocrl", {"ColocRL: NMT, 2 GPUs", "ColocRL: NMT, 4 GPUs"});
  both("hdp", {"HDP: NMT, 4 layers"});
  claim.statements.push_back(better(systems("gdp"), "expert", gdp_larger_models()));
  claim.statements.push_back(better("expert", systems("gdp"), {"GDP: GNMT, 8 layers"}));
  return claim;
}

const Names& post_models() {
  static const Names names{"Post: Inception-V3, 4 GPUs",    "Post: ResNet, 2 GPUs",
                           "Post: ResNet, 4 GPUs",          "Post: ResNet, 8 GPUs",
                           "Post: RNNLM, 4 layers, 4 GPUs", "Post: NMT, 4 GPUs"};
  return names;
}

std::vector<Statement> post_and_spotlight_on(const Systems& systems, const Names& post,
                                             const Names& spotlight) {
  const std::string ppo = systems("post", "learner=ppo");
  const std::string gradient = systems("post", "learner=pg");
  return {better(systems("post"), ppo, post),
          better(systems("post"), systems("post", "learner=ce"), post),
          better(systems("post"), gradient, post), better(ppo, gradient, post),
          better(systems("spotlight"), systems("spotlight", "learner=pg"), spotlight)};
}

Claim post_and_spotlight(const Systems& systems) {
  return {
      "A3",
      "At an equal budget Post is better than PPO, cross-entropy and policy gradient alone, and "
      "PPO than policy gradient",
      "Spotlight, Post",
      post_and_spotlight_on(systems, post_models(),
                            {"Spotlight: CIFAR-10 CNN, 2 GPUs", "Spotlight: CIFAR-10 CNN, 4 GPUs",
                             "Spotlight: RNNLM, 4 GPUs", "Spotlight: NMT, 4 GPUs"})};
}

Claim post_and_spotlight_elsewhere(const Systems& systems) {
  return {"A3 others", "The same on two GPUs and on eight", "Spotlight, Post",
          post_and_spotlight_on(systems,
                                {"Post: Inception-V3, 2 GPUs", "Post: Inception-V3, 8 GPUs",
                                 "Post: RNNLM, 4 layers, 2 GPUs", "Post: RNNLM, 4 layers, 8 GPUs",
                                 "Post: NMT, 2 GPUs", "Post: NMT, 8 GPUs"},
                                {"Spotlight: RNNLM, 2 GPUs", "Spotlight: NMT, 2 GPUs"})};
}

const Names& placeto_models() {
  static const Names names{"Placeto: Inception-V3, 2 GPUs", "Placeto: Inception-V3, 4 GPUs",
                           "Placeto: NMT, 2 GPUs", "Placeto: NASNet, 4 GPUs"};
  return names;
}

// Both decide about the same number of ColocRL's units, and every step of Placeto counts.
std::vector<Statement> fewer_placements_on(const Systems& systems, const Names& on) {
  const std::string placeto = systems("placeto", kPlacetoUnits);
  const std::string recurrent = systems("colocrl", "groups=80,acyclic=true,largest=0");
  Statement quality = better(placeto, recurrent, on);
  quality.text = "placeto is within 1 % of colocrl, or better";
  quality.most = 1.01;
  return {quality, sooner(Measure::kEvaluations, placeto, recurrent, on, 1),
          sooner(Measure::kEvaluations, placeto, recurrent, on, 3)};
}

Claim fewer_placements(const Systems& systems) {
  return {"A4", "Placeto needs 3 to 6 times fewer placements than the recurrent policy", "Placeto",
          fewer_placements_on(systems, placeto_models())};
}

// In as many placements as Post had, Placeto learns fewer than four times.
Claim fewer_placements_at_length(const Systems& systems) {
  Names on;
  for (const std::string& name : placeto_models()) on.push_back(name + ", 24,000 placements");
  return {"A4 at length", "The same in ten times as many placements", "Placeto",
          fewer_placements_on(systems, on)};
}

// NMT on four GPUs is the paper's exception.
Claim fewer_placements_elsewhere(const Systems& systems) {
  Claim claim{"A4 others", "The same of NASNet on two GPUs, and not of NMT on four", "Placeto",
              fewer_placements_on(systems, {"Placeto: NASNet, 2 GPUs"})};
  const Statement against = fewer_placements_on(systems, {"Placeto: NMT, 4 GPUs"})[1];
  claim.statements.push_back(
      sooner(against.measure, against.right, against.left, against.workloads, 1));
  return claim;
}

Claim gdp_against_hdp_elsewhere(const Systems& systems) {
  Names on = gdp_larger_models();
  on.insert(on.end(), {"GDP: GNMT, 8 layers", "GDP: AmoebaNet"});
  return {"A5 others",
          "GDP is better than HDP on the larger nets, too",
          "GDP",
          {better(systems("gdp"), systems("hdp"), on)}};
}

// About 15 times: at least half of that.
Claim gdp_against_hdp(const Systems& systems) {
  const std::string gdp = systems("gdp");
  const std::string hdp = systems("hdp");
  Statement by_nine = better(gdp, hdp, gdp_models());
  by_nine.text = fmt::format("{} is better than {} by 9.2 % or more", gdp, hdp);
  by_nine.most = 1 - 0.092;
  return {"A5",
          "GDP is better than HDP by 9.2 % on average, and its search about 15 times as fast",
          "GDP",
          {better(gdp, hdp, gdp_models()), by_nine,
           sooner(Measure::kMeasuredSeconds, gdp, hdp, gdp_models(), 1),
           sooner(Measure::kMeasuredSeconds, gdp, hdp, gdp_models(), 7.5),
           sooner(Measure::kEvaluations, gdp, hdp, gdp_models(), 1)}};
}

const Names& mars_models() {
  static const Names names{"Mars: Inception-V3", "GNMT-4 of 16 words", "Mars: BERT"};
  return names;
}

Claim pre_training(const Systems& systems) {
  const std::string with = systems("mars");
  const std::string without = systems("mars", "pretrain=0");
  Statement as_good = equal(with, without, {mars_models()[0]});
  as_good.text += ", or better";
  as_good.least = 0;
  Statement by_thirteen = sooner(Measure::kMeasuredSeconds, with, without, mars_models(), 1);
  by_thirteen.text =
      fmt::format("{} needs 13 % less time with real steps than {}, or less", with, without);
  by_thirteen.most = 0.87;
  return {"A6",
          "Pre-trained Mars is better than Mars that is not, and its search takes 13 % less time",
          "Mars",
          {better(with, without, {mars_models()[2]}), better(with, without, {mars_models()[1]}),
           as_good, sooner(Measure::kMeasuredSeconds, with, without, mars_models(), 1), by_thirteen,
           sooner(Measure::kAgentSeconds, with, without, mars_models(), 1),
           sooner(Measure::kEvaluations, with, without, mars_models(), 1)}};
}

const Names& mayer_models() {
  static const Names names{"CNN on 50 unequal", "RNN on 50 unequal", "dynamic RNN on 50 unequal"};
  return names;
}

Claim critical_paths() {
  return {"A8",
          "Placing and scheduling by the critical path is faster than hash and FIFO, and than HEFT",
          "Mayer",
          {better("critical_path@pct", "hash@fifo", mayer_models()),
           better("mite@pct", "hash@fifo", mayer_models()),
           better("mite@pct", "heft@own", mayer_models()),
           better("mite@pct", "mite@fifo", mayer_models())}};
}

// Learned groups against drawn ones. Ours begin as slices, which are better than drawn groups
// before anything is learned: so also against slices that stay.
Claim learned_groups(const Systems& systems, Version version) {
  const Names on{"HDP: Inception-V3", "HDP: NMT, 2 layers"};
  Claim claim{"HDP groups",
              "Learned groups are better than groups that are drawn once",
              "HDP",
              {better(systems("hdp"), systems("hdp", "first_groups=drawn"), on)}};
  if (version == Version::kEmplace) {
    claim.statements.push_back(better(systems("hdp"), systems("hdp", "grouper_lr=1e-9"), on));
  }
  return claim;
}

Grid mars_table(const Systems& systems) {
  return {"Mars's table",
          "Step times of three models under six placements",
          "Mars",
          mars_models(),
          {{"human", "expert"},
           {"GPU only", "single(device=0)"},
           {"grouper-placer", systems("mars", "design=grouper_placer")},
           {"encoder-placer", systems("mars", "design=encoder_placer")},
           {"Mars", systems("mars")},
           {"Mars without pre-training", systems("mars", "pretrain=0")}}};
}

Grid post_sensitivity(const Systems& systems) {
  Grid grid{"Post's K and N",
            "Samples between steps of PPO (K) and between refits (N)",
            "Post",
            post_models(),
            {}};
  for (const int k : {10, 20, 40}) {
    for (const int n : {100, 200, 400}) {
      grid.columns.push_back({fmt::format("K={} N={}", k, n),
                              systems("post", fmt::format("samples={},refit={}", k, n))});
    }
  }
  return grid;
}

std::vector<Grid> placeto_parts(const Systems& systems) {
  const auto with = [&](const std::string& options) {
    return systems("placeto", kPlacetoUnits + ("," + options));
  };
  const std::vector<Grid::Column> columns{{"stepwise", with("reward=improvement")},
                                          {"terminal", with("reward=terminal")},
                                          {"no pools", with("pools=false")},
                                          {"no messages", with("rounds=0")}};
  const std::string text = "Rewards at every step or at the end; without pools; without messages";
  return {{"Placeto's parts", text, "Placeto", placeto_models(), columns, /*until_best=*/true},
          {"Placeto's parts at length",
           text + "; ten times as many placements",
           "Placeto",
           {"Placeto: Inception-V3, 2 GPUs, 24,000 placements",
            "Placeto: NASNet, 4 GPUs, 24,000 placements"},
           columns,
           /*until_best=*/true}};
}

Grid mayer_matrix() {
  Grid grid{"Mayer's matrix",
            "Five partitioners, three schedulers, and HEFT",
            "Mayer",
            mayer_models(),
            {}};
  for (const std::string placer : {"hash", "batch_split", "critical_path", "mite", "dfs"}) {
    for (const std::string scheduler : {"fifo", "pct", "msr"}) {
      grid.columns.push_back(
          {fmt::format("{} {}", placer, scheduler), fmt::format("{}@{}", placer, scheduler)});
    }
  }
  grid.columns.push_back({"HEFT", "heft@own"});
  return grid;
}

}  // namespace

std::string to_string(Version version) {
  return version == Version::kPaper ? "as published" : "ours";
}

std::vector<Claim> claims(Version version) {
  const Systems systems(version);
  const Names fitting{"ColocRL: RNNLM, 2 GPUs", "ColocRL: RNNLM, 4 GPUs",
                      "ColocRL: Inception-V3, 2 GPUs"};
  std::vector<Claim> all{fits_on_one(systems, "A1", "the papers' hardware", fitting),
                         fits_on_one_elsewhere(systems),
                         fits_on_one(systems, "A1 today", "today's",
                                     {"RNNLM on 4 of today", "ResNet-50 on 4 of today"}),
                         does_not_fit(systems),
                         does_not_fit_elsewhere(systems),
                         post_and_spotlight(systems),
                         post_and_spotlight_elsewhere(systems),
                         fewer_placements(systems),
                         fewer_placements_at_length(systems),
                         fewer_placements_elsewhere(systems),
                         gdp_against_hdp(systems),
                         gdp_against_hdp_elsewhere(systems),
                         pre_training(systems),
                         learned_groups(systems, version)};
  if (version == Version::kEmplace) all.push_back(critical_paths());
  return all;
}

std::vector<Grid> grids(Version version) {
  const Systems systems(version);
  std::vector<Grid> all{mars_table(systems), post_sensitivity(systems)};
  for (Grid& grid : placeto_parts(systems)) all.push_back(std::move(grid));
  if (version == Version::kEmplace) all.push_back(mayer_matrix());
  return all;
}

}  // namespace emplace::bench
