#include "reproduce/claims.h"

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

const Names& post_models() {
  static const Names names{"Post: Inception-V3, 4 GPUs",    "Post: ResNet, 2 GPUs",
                           "Post: ResNet, 4 GPUs",          "Post: ResNet, 8 GPUs",
                           "Post: RNNLM, 4 layers, 4 GPUs", "Post: NMT, 4 GPUs"};
  return names;
}

Claim post_and_spotlight(const Systems& systems) {
  const Names spotlight{"Spotlight: CIFAR-10 CNN, 2 GPUs", "Spotlight: CIFAR-10 CNN, 4 GPUs",
                        "Spotlight: RNNLM, 4 GPUs", "Spotlight: NMT, 4 GPUs"};
  const std::string ppo = systems("post", "learner=ppo");
  const std::string gradient = systems("post", "learner=pg");
  return {
      "A3",
      "At an equal budget Post is better than PPO, cross-entropy and policy gradient alone, and "
      "PPO than policy gradient",
      "Spotlight, Post",
      {better(systems("post"), ppo, post_models()),
       better(systems("post"), systems("post", "learner=ce"), post_models()),
       better(systems("post"), gradient, post_models()), better(ppo, gradient, post_models()),
       better(systems("spotlight"), systems("spotlight", "learner=pg"), spotlight)}};
}

const Names& placeto_models() {
  static const Names names{"Placeto: Inception-V3, 2 GPUs", "Placeto: Inception-V3, 4 GPUs",
                           "Placeto: NMT, 2 GPUs", "Placeto: NASNet, 4 GPUs"};
  return names;
}

// Both decide about the same number of ColocRL's units, and every step of Placeto counts.
Claim fewer_placements(const Systems& systems) {
  const std::string placeto = systems("placeto", kPlacetoUnits);
  const std::string recurrent = systems("colocrl", "groups=80,acyclic=true,largest=0");
  Statement quality = better(placeto, recurrent, placeto_models());
  quality.text = "placeto is within 1 % of colocrl, or better";
  quality.most = 1.01;
  return {"A4",
          "Placeto needs 3 to 6 times fewer placements than the recurrent policy",
          "Placeto",
          {quality, sooner(Measure::kEvaluations, placeto, recurrent, placeto_models(), 1),
           sooner(Measure::kEvaluations, placeto, recurrent, placeto_models(), 3)}};
}

const Names& gdp_models() {
  static const Names names{"GDP: RNNLM, 2 layers", "GDP: GNMT, 2 layers",
                           "GDP: Transformer-XL, 2 layers", "GDP: Inception-V3",
                           "GDP: WaveNet 2x18"};
  return names;
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

// Learned groups against drawn ones. (Ours begin as slices, which are better than drawn groups
// before anything is learned.)
Claim learned_groups(const Systems& systems) {
  const Names on{"HDP: Inception-V3", "HDP: NMT, 2 layers"};
  return {"HDP groups",
          "Learned groups are better than groups that are drawn once",
          "HDP",
          {better(systems("hdp"), systems("hdp", "first_groups=drawn"), on)}};
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

Grid placeto_rewards(const Systems& systems) {
  const auto with = [&](const std::string& options) {
    return systems("placeto", kPlacetoUnits + ("," + options));
  };
  return {"Placeto's parts",
          "Rewards at every step or at the end; without pools; without messages",
          "Placeto",
          placeto_models(),
          {{"stepwise", with("reward=improvement")},
           {"terminal", with("reward=terminal")},
           {"no pools", with("pools=false")},
           {"no messages", with("rounds=0")}}};
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
  std::vector<Claim> all{fits_on_one(systems, "A1", "the papers' hardware",
                                     {"ColocRL: RNNLM, 2 GPUs", "ColocRL: RNNLM, 4 GPUs",
                                      "ColocRL: Inception-V3, 2 GPUs"}),
                         fits_on_one(systems, "A1 today", "today's",
                                     {"RNNLM on 4 of today", "ResNet-50 on 4 of today"}),
                         does_not_fit(systems),
                         post_and_spotlight(systems),
                         fewer_placements(systems),
                         gdp_against_hdp(systems),
                         pre_training(systems)};
  if (version == Version::kPaper) all.push_back(learned_groups(systems));
  if (version == Version::kEmplace) all.push_back(critical_paths());
  return all;
}

std::vector<Grid> grids(Version version) {
  const Systems systems(version);
  std::vector<Grid> all{mars_table(systems), post_sensitivity(systems), placeto_rewards(systems)};
  if (version == Version::kEmplace) all.push_back(mayer_matrix());
  return all;
}

}  // namespace emplace::bench
