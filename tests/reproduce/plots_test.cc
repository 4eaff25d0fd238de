// What is drawn, on runs that are written down here.
#include "reproduce/plots.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "io/file.h"
#include "reproduce/figures.h"
#include "zoo/published.h"

namespace emplace::bench {
namespace {

using Curve = std::vector<std::pair<double, double>>;

// The last step that a curve has at so much spent; 0 before its first.
double at(const Curve& curve, double spent) {
  double step = 0;
  for (const auto& [x, y] : curve) {
    if (x <= spent) step = y;
  }
  return step;
}

TEST(Plots, show_the_best_so_far_over_what_was_spent) {
  const std::string model = "RNNLM on 4 of today";
  RunStore store("");
  for (int seed = 1; seed <= 3; ++seed) {
    LearningRun run{.step = 400'000,
                    .fits = true,
                    .evaluations = 600,
                    .agent_seconds = 60,
                    .measured_seconds = 3000,
                    .history = {}};
    run.history = {{100, 30, 500, 800'000, true}, {300, 40, 2000, 400'000 + 100'000 * seed, true}};
    store.keep(run_key(workload(model), "random", seed, {}), run);
  }
  LearningRun plain{.step = 500'000, .fits = true, .evaluations = 1, .history = {}};
  plain.history = {{1, 0.1, 0, 500'000, true}};
  store.keep(run_key(workload(model), "single", 1, {}), plain);
  const Evidence evidence({{model, {nullptr, 1'000'000}}}, store, 3, {});
  const Curve placements = curve_of(evidence, model, "random", Spent::kPlacements);
  EXPECT_DOUBLE_EQ(at(placements, 90), 0);
  EXPECT_DOUBLE_EQ(at(placements, 200), 0.8);
  EXPECT_DOUBLE_EQ(at(placements, 600), 0.6);  // the seeds' median
  const Curve agent = curve_of(evidence, model, "random", Spent::kAgentSeconds);
  EXPECT_DOUBLE_EQ(at(agent, 29), 0);
  EXPECT_DOUBLE_EQ(at(agent, 35), 0.8);
  EXPECT_DOUBLE_EQ(at(agent, 60), 0.6);
  const Curve real = curve_of(evidence, model, "random", Spent::kMeasuredSeconds);
  EXPECT_DOUBLE_EQ(at(real, 1000), 0.8);
  EXPECT_DOUBLE_EQ(at(real, 3000), 0.6);
  EXPECT_TRUE(curve_of(evidence, model, "single", Spent::kMeasuredSeconds).empty());
}

TEST(Plots, never_rise_where_seeds_find_what_fits_at_different_times) {
  const std::string model = "RNNLM on 4 of today";
  RunStore store("");
  const std::vector<std::pair<int, int>> found{
      {100, 1000}, {100, 1100}, {100, 1900}, {300, 1800}, {300, 2000}};
  for (int seed = 1; seed <= 5; ++seed) {
    const auto [evaluations, step] = found[static_cast<std::size_t>(seed - 1)];
    LearningRun run{.step = step * 1000, .fits = true, .evaluations = 600, .history = {}};
    run.history = {{evaluations, 1, 1, run.step, true}};
    store.keep(run_key(workload(model), "random", seed, {}), run);
  }
  const Evidence evidence({{model, {nullptr, 1'000'000}}}, store, 5, {});
  const Curve curve = curve_of(evidence, model, "random", Spent::kPlacements);
  EXPECT_DOUBLE_EQ(at(curve, 200), 1.9);
  EXPECT_DOUBLE_EQ(at(curve, 600), 1.8);
}

// Three statements on one model, of which two have the same text; the last has no runs.
class StatementFigures : public testing::Test {
 protected:
  StatementFigures() {
    for (int seed = 1; seed <= 3; ++seed) {
      keep("random", seed, 300'000 + 1'000 * seed);
      keep("anneal", seed, 600'000);
    }
    claim_.statements = {better("random is better", "anneal", kOne),
                         better("random is 5 % better", "anneal", kOne),
                         better("random is better", "anneal", kOther)};
  }

  static Statement better(const std::string& text, const std::string& right,
                          const std::string& on) {
    return {.text = text, .left = "random", .right = right, .workloads = {on}};
  }
  void keep(const std::string& placer, int seed, Nanoseconds step, bool fits = true) {
    store_.keep(run_key(workload(kOne), placer, seed, {}),
                {.step = step, .fits = fits, .code = "now"});
  }
  std::string script() const {
    const Evidence evidence({{kOne, {nullptr, 1'000'000}}}, store_, 3, {});
    return statements_script(claim_, Version::kEmplace, evidence);
  }

  const std::string kOne = "RNNLM on 4 of today";
  const std::string kOther = "ResNet-50 on 4 of today";
  RunStore store_{""};
  Claim claim_{"A0", "a claim", "nobody", {}};
};

TEST_F(StatementFigures, have_a_row_of_every_statement) {
  const std::string text = script();
  EXPECT_NE(text.find("0.50333 0 "), std::string::npos) << text;
  EXPECT_NE(text.find("0.50333 -1 "), std::string::npos) << text;
  EXPECT_NE(text.find("set label \"not run\" at graph 0.98, first -2 "), std::string::npos) << text;
  EXPECT_EQ(text.find("first -1 right"), std::string::npos) << text;
}

TEST_F(StatementFigures, name_the_workloads_where_the_text_repeats) {
  const std::string text = script();
  EXPECT_NE(text.find("random is better on RNNLM on 4 of today\" 0"), std::string::npos) << text;
  EXPECT_NE(text.find("random is better on ResNet-50 on 4 of today\" -2"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\"random is 5 percent better\" -1"), std::string::npos) << text;
}

TEST_F(StatementFigures, say_where_nothing_fits) {
  for (int seed = 1; seed <= 3; ++seed) keep("heft", 1, 600'000, /*fits=*/false);
  claim_.statements[1].right = "heft";
  EXPECT_NE(script().find("set label \"nothing that fits was found\" at graph 0.98, first -1 "),
            std::string::npos);
}

TEST_F(StatementFigures, are_none_where_nothing_was_run) {
  claim_.statements.erase(claim_.statements.begin(), claim_.statements.begin() + 2);
  EXPECT_EQ(script(), "");
}

TEST(GridFigures, tell_all_bars_apart_and_say_what_does_not_fit) {
  Grid grid{"G", "a table", "nobody", {"RNNLM on 4 of today"}, {}, false};
  RunStore store("");
  int step = 100;
  for (const std::string partitioner : {"hash", "mite", "dfs"}) {
    for (const std::string order : {"fifo", "pct", "msr"}) {
      const std::string entrant = partitioner + "@" + order;
      grid.columns.push_back({partitioner + " " + order, entrant});
      store.keep(run_key(workload(grid.workloads[0]), entrant, 1, {}),
                 {.step = ++step, .fits = partitioner != "mite" || order != "pct"});
    }
  }
  const Evidence evidence({{grid.workloads[0], {nullptr, 1'000'000}}}, store, 1, {});
  const std::string script = grid_script(grid, Version::kEmplace, evidence);
  std::set<std::string> colours;
  for (std::size_t at = script.find("lc rgb '#"); at != std::string::npos;
       at = script.find("lc rgb '#", at + 1)) {
    colours.insert(script.substr(at, 16));
  }
  EXPECT_EQ(colours.size(), 9U) << script;
  // Nine bars and a gap of two: the fifth is in the middle of its row, and is the one missing.
  EXPECT_NE(script.find("set label 'does not fit' at first 0.0000,"), std::string::npos) << script;
  EXPECT_EQ(script.find("set label", script.find("set label") + 1), std::string::npos);
}

TEST(CurveFigures, name_what_the_lines_differ_in) {
  const CurveNames names =
      curve_names({"mars(preset=paper,width=128)", "mars(preset=paper,width=128,pretrain=0)"});
  EXPECT_EQ(names.common, "preset=paper, width=128");
  EXPECT_EQ(names.lines, (std::vector<std::string>{"mars", "mars(pretrain=0)"}));
  const CurveNames others = curve_names({"post", "post(learner=ppo)"});
  EXPECT_EQ(others.common, "");
  EXPECT_EQ(others.lines, (std::vector<std::string>{"post", "post(learner=ppo)"}));
}

class FigurePage : public StatementFigures {
 protected:
  FigurePage() : folder_(testing::TempDir() + "emplace_figure_page") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  // Of the claim and another one, of which the first is drawn.
  std::string draw() {
    Claim other = claim_;
    other.key = "A9";
    const Program chosen{{Version::kEmplace, {claim_}, {}}};
    const Program all{{Version::kEmplace, {claim_, other}, {}}};
    const Evidence evidence({{kOne, {nullptr, 1'000'000}}}, store_, 3, {});
    draw_figures(chosen, all, evidence, folder_);
    return read_file(folder_ + "/README.md");
  }

  std::string folder_;
};

TEST_F(FigurePage, keeps_what_was_drawn_before_and_what_it_was_of) {
  claim_.statements.clear();
  write_file(folder_ + "/a9-emplace-statements.svg", "<svg/>\n<!-- Code: 0a1b2c3. -->\n");
  const std::string page = draw();
  EXPECT_NE(page.find("(a9-emplace-statements.svg)\n\nCode: 0a1b2c3.\n"), std::string::npos)
      << page;
  EXPECT_EQ(page.find("a0-emplace"), std::string::npos) << page;
}

TEST_F(FigurePage, shows_what_is_drawn_now) {
  if (std::system("gnuplot --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "without gnuplot";
  const std::string page = draw();
  EXPECT_NE(page.find("(a0-emplace-statements.svg)\n\nCode: now.\n"), std::string::npos) << page;
  EXPECT_NE(read_file(folder_ + "/a0-emplace-statements.svg").find("not run"), std::string::npos);
}

TEST_F(FigurePage, says_what_a_figure_without_code_is) {
  EXPECT_NE(draw().find("Where no code is named, the figure is an earlier one whose runs are not "
                        "kept."),
            std::string::npos);
}

// Whatever the papers on placement ran on is in some claim, in both versions.
TEST(Claims, are_of_all_published_workloads) {
  for (const Version version : {Version::kPaper, Version::kEmplace}) {
    const Entrants entrants = entrants_of({{version, claims(version), grids(version)}});
    for (const zoo::PublishedWorkload& one : zoo::published_workloads()) {
      // Tofu's are partitioned; GNMT-4 of 40 words would take hours, and has 16 here.
      const std::string name = one.system + ": " + one.workload;
      if (one.system == "Tofu" || name == "Mars: GNMT-4") continue;
      EXPECT_TRUE(entrants.contains(name)) << name;
    }
    for (const auto& [name, placers] : entrants) EXPECT_EQ(workload(name).name, name);
  }
}

// In 2,400 placements, Placeto learns fewer than four times.
TEST(Claims, give_placeto_the_placements_to_learn_in) {
  const auto find = [](const std::vector<Claim>& all, const std::string& key) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Claim& one) { return one.key == key; });
    return found == all.end() ? Claim{} : *found;
  };
  for (const Version version : {Version::kPaper, Version::kEmplace}) {
    const std::vector<Claim> all = claims(version);
    const Claim shorter = find(all, "A4");
    const Claim longer = find(all, "A4 at length");
    ASSERT_EQ(longer.statements.size(), shorter.statements.size());
    for (std::size_t i = 0; i < longer.statements.size(); ++i) {
      const Statement& statement = longer.statements[i];
      EXPECT_EQ(statement.left, shorter.statements[i].left);
      EXPECT_EQ(statement.right, shorter.statements[i].right);
      EXPECT_EQ(statement.most, shorter.statements[i].most);
      ASSERT_EQ(statement.workloads.size(), shorter.statements[i].workloads.size());
      for (std::size_t j = 0; j < statement.workloads.size(); ++j) {
        const Workload& one = workload(shorter.statements[i].workloads[j]);
        const Workload& ten = workload(statement.workloads[j]);
        EXPECT_EQ(ten.evaluations, 10 * one.evaluations);
        EXPECT_EQ(ten.model, one.model);
        EXPECT_EQ(ten.cluster, one.cluster);
      }
    }
  }
}

// Which can be asked for in a list.
TEST(Claims, have_keys_of_their_own) {
  for (const Version version : {Version::kPaper, Version::kEmplace}) {
    std::set<std::string> keys;
    for (const Claim& claim : claims(version)) EXPECT_TRUE(keys.insert(claim.key).second);
    for (const Grid& grid : grids(version)) EXPECT_TRUE(keys.insert(grid.key).second);
    for (const std::string& key : keys) EXPECT_EQ(key.find(','), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace emplace::bench
