#include "support/claims.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace emplace::bench {
namespace {

using Names = std::vector<std::string>;

// What "equal" leaves room for.
constexpr double kEqual = 0.02;
// What a paper calls a gain of 15 %.
constexpr double kFifteenPercentLess = 0.85;

const Names& five() {
  static const Names names{"inception-v3", "gnmt-4", "bert", "rnnlm", "nasnet"};
  return names;
}

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
  const std::string what = measure == Measure::kEvaluations ? "fewer placements" : "less time";
  const std::string how = times > 1 ? fmt::format("at least {:g} times ", times) : "";
  return {.text = fmt::format("{} needs {}{} than {}", left, how, what, right),
          .measure = measure,
          .left = left,
          .right = right,
          .workloads = on,
          .most = 1 / times};
}

Claim fits_on_one() {
  const Names chains{"rnnlm", "resnet-50"};
  Claim claim{"A1",
              "Chain-like nets that fit on one device: learned = one device; partitioners worse",
              "ColocRL, HDP",
              {}};
  for (const std::string& model : chains) {
    for (const std::string placer : {"colocrl", "hdp"}) {
      claim.statements.push_back(equal(placer, "single", {model}));
    }
  }
  for (const std::string partitioner : {"scotch", "mincut", "metis"}) {
    claim.statements.push_back(better("single", partitioner, chains));
    claim.statements.push_back(better("colocrl", partitioner, chains));
  }
  return claim;
}

Claim does_not_fit() {
  const Names large{"gnmt-4", "bert"};
  Claim claim{"A2",
              "Nets that do not fit: learned beats the expert by 15 to 60 %, except at 8 layers",
              "HDP, GDP, Mars",
              {}};
  for (const std::string placer : {"hdp", "gdp", "mars"}) {
    claim.statements.push_back(better(placer, "expert", large));
    claim.statements.push_back(better_by_fifteen(placer, "expert", large));
  }
  for (const std::string placer : {"hdp", "gdp"}) {
    claim.statements.push_back(better("expert", placer, {"gnmt-8"}));
  }
  return claim;
}

Claim post_and_spotlight() {
  return {
      "A3",
      "At an equal budget Post is better than PPO, cross-entropy and policy gradient alone, and "
      "PPO than policy gradient",
      "Spotlight, Post",
      {better("post", "post(learner=ppo)", five()), better("post", "post(learner=ce)", five()),
       better("post", "post(learner=pg)", five()),
       better("post(learner=ppo)", "post(learner=pg)", five()),
       better("spotlight", "spotlight(learner=pg)", five())}};
}

Claim fewer_placements() {
  const Names on{"inception-v3", "gnmt-4", "nasnet"};
  Statement quality = better("placeto", "colocrl", on);
  quality.text = "placeto is within 1 % of colocrl, or better";
  quality.most = 1.01;
  return {"A4",
          "Placeto needs 3 to 6 times fewer placements than the recurrent policy",
          "Placeto",
          {quality, sooner(Measure::kEvaluations, "placeto", "colocrl", on, 1),
           sooner(Measure::kEvaluations, "placeto", "colocrl", on, 3)}};
}

// About 15 times: at least half of that.
Claim gdp_against_hdp() {
  Statement by_nine = better("gdp", "hdp", five());
  by_nine.text = "gdp is better than hdp by 9.2 % or more";
  by_nine.most = 1 - 0.092;
  return {
      "A5",
      "GDP is better than HDP by 9.2 % on average, and its search about 15 times as fast",
      "GDP",
      {better("gdp", "hdp", five()), by_nine, sooner(Measure::kSeconds, "gdp", "hdp", five(), 1),
       sooner(Measure::kSeconds, "gdp", "hdp", five(), 7.5),
       sooner(Measure::kEvaluations, "gdp", "hdp", five(), 1)}};
}

Claim pre_training() {
  const Names on{"inception-v3", "gnmt-4", "bert"};
  const std::string without = "mars(pretrain=0)";
  Statement as_good = equal("mars", without, {"inception-v3"});
  as_good.text += ", or better";
  as_good.least = 0;
  Statement by_thirteen = sooner(Measure::kSeconds, "mars", without, on, 1);
  by_thirteen.text = fmt::format("mars needs 13 % less time than {}, or less", without);
  by_thirteen.most = 0.87;
  return {"A6",
          "Pre-trained Mars is better than Mars that is not, and its agent needs 13 % less time",
          "Mars",
          {better("mars", without, {"bert"}), better("mars", without, {"gnmt-4"}), as_good,
           sooner(Measure::kSeconds, "mars", without, on, 1), by_thirteen,
           sooner(Measure::kEvaluations, "mars", without, on, 1)}};
}

}  // namespace

std::string Workload::description() const {
  return fmt::format("{} on {} devices at {} %", model, devices, memory_percent);
}

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all{
      {"inception-v3", "zoo:inception-v3", 4, 120},
      {"nasnet", "zoo:nasnet-small:layers=6", 4, 120},
      {"resnet-50", "zoo:resnet-50", 4, 120},
      {"rnnlm", "zoo:rnnlm:sequence=8", 4, 120},
      {"gnmt-4", "zoo:gnmt-4:sequence=6", 4, 80},
      {"gnmt-8", "zoo:gnmt-8:sequence=4", 8, 80},
      {"bert", "zoo:bert-base", 4, 40},
  };
  return all;
}

const Workload& workload(const std::string& name) {
  const auto found = std::find_if(workloads().begin(), workloads().end(),
                                  [&](const Workload& one) { return one.name == name; });
  EMPLACE_CHECK(found != workloads().end());
  return *found;
}

const std::vector<Claim>& claims() {
  static const std::vector<Claim> all{fits_on_one(),      does_not_fit(),    post_and_spotlight(),
                                      fewer_placements(), gdp_against_hdp(), pre_training()};
  return all;
}

}  // namespace emplace::bench
