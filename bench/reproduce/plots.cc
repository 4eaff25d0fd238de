#include "reproduce/plots.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace emplace::bench {
namespace {

// Hands a script to gnuplot, which writes to a name that is only then the figure's.
void plot(const std::string& path, const std::string& script, int width, int height) {
  const std::string unfinished = path + ".unfinished";
  std::FILE* gnuplot = ::popen("gnuplot", "w");
  if (gnuplot == nullptr) fail_input("{}: gnuplot cannot be started", path);
  fmt::print(
      gnuplot,
      "set terminal svg size {},{} dynamic noenhanced font 'sans-serif,12' background 'white'\n"
      "set output '{}'\nset border 3 lc rgb '#888888'\nset tics nomirror\n"
      "set grid ytics lc rgb '#dddddd'\n{}\nunset output\n",
      width, height, unfinished, script);
  if (::pclose(gnuplot) != 0) {
    std::filesystem::remove(unfinished);
    fail_input("{}: gnuplot failed; is it installed?", path);
  }
  std::filesystem::rename(unfinished, path);
}

std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  return '"' + text + '"';
}

double mean_step(const Evidence& evidence, const std::string& name, const std::string& entrant) {
  double sum = 0;
  int fitting = 0;
  for (int seed = 1; seed <= evidence.seeds(name, entrant); ++seed) {
    const LearningRun& one = evidence.run(name, entrant, seed);
    if (!one.fits) continue;
    sum += static_cast<double>(one.step);
    ++fitting;
  }
  return fitting > 0 ? sum / fitting : 0;
}

double spent_at(const RunProgress& point, Spent spent) {
  if (spent == Spent::kPlacements) return static_cast<double>(point.evaluations);
  return spent == Spent::kAgentSeconds ? point.agent_seconds : point.measured_seconds;
}

double spent_by(const LearningRun& run, Spent spent) {
  if (spent == Spent::kPlacements) return static_cast<double>(run.evaluations);
  return spent == Spent::kAgentSeconds ? run.agent_seconds : run.measured_seconds;
}

const char* label_of(Spent spent) {
  switch (spent) {
    case Spent::kPlacements:
      return "placements evaluated";
    case Spent::kAgentSeconds:
      return "seconds of the agent";
    case Spent::kMeasuredSeconds:
      break;
  }
  return "seconds with real steps";
}

// In step times on one device; endless where nothing that fits was found by then.
double best_by(const LearningRun& run, Spent spent, double at, Nanoseconds single) {
  double best = std::numeric_limits<double>::infinity();
  for (const RunProgress& point : run.history) {
    if (spent_at(point, spent) > at) break;
    if (point.fits) best = static_cast<double>(point.step) / static_cast<double>(single);
  }
  return best;
}

struct JudgedStatement {
  const Statement* statement;
  MeanInterval interval;
};

// In lines that are ended at the first chance. gnuplot takes labels at axes for formats, so there
// must be no "%".
std::string tic_label(const std::string& text) {
  constexpr std::size_t kLine = 45;
  std::string label;
  std::size_t length = 0;
  for (const char c : text) {
    label += c == '%' ? "percent" : std::string(1, c);
    if (++length < kLine || (c != ' ' && c != ',')) continue;
    label += "\\n";
    length = 0;
  }
  return quoted(label);
}

// A row each, the first on top: what is claimed as a band, what was measured as a line.
std::string statements_script(const std::vector<JudgedStatement>& judged,
                              const std::string& title) {
  // What is further away is cut off.
  constexpr double kFurthest = 30;
  double low = 0.8;
  double high = 1.25;
  std::string points = "$points << END\n";
  std::string bands;
  std::string names;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const MeanInterval& interval = judged[i].interval;
    const Statement& statement = *judged[i].statement;
    const bool bounded = std::isfinite(interval.high);
    const double from = std::max(1 / kFurthest, bounded ? interval.low : interval.mean);
    const double to = std::min(kFurthest, bounded ? interval.high : interval.mean);
    low = std::min({low, from, interval.mean});
    high = std::max({high, to, interval.mean});
    const auto row = -static_cast<double>(i);
    points += fmt::format("{:.5f} {} {:.5f} {:.5f}\n", interval.mean, row, from, to);
    const std::string least =
        statement.least > 0 ? fmt::format("first {}", statement.least) : "graph 0";
    bands += fmt::format(
        "set object rectangle from {}, first {} to first {}, first {} fc rgb '#cfe8cf' fs noborder "
        "behind\n",
        least, row - 0.35, statement.most, row + 0.35);
    names += fmt::format("{}{} {}", i == 0 ? "" : ", ", tic_label(statement.text), row);
  }
  return fmt::format(
      "{}END\n{}set title {}\nset logscale x\nset xrange [{:.4f}:{:.4f}]\n"
      "set yrange [{}:0.6]\nset ytics ({})\nset xtics (0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, "
      "1.5, 2, 3, 5, 10, 20)\n"
      "set lmargin at screen 0.42\n"
      "set grid noytics xtics\nunset key\n"
      "set xlabel 'ratio; what is claimed is shaded'\nset bars 0.5\n"
      "set arrow from first 1, graph 0 to first 1, graph 1 nohead lc rgb '#888888'\n"
      "plot $points using 1:2:3:4 with xerrorbars pt 7 ps 0.7 lw 2 lc rgb '#1f4e79'",
      points, bands, quoted(title), low / 1.1, high * 1.1,
      -static_cast<double>(judged.size()) + 0.4, names);
}

}  // namespace

void draw_grid(const std::string& path, const Grid& grid, Version version,
               const Evidence& evidence) {
  std::string data = "$data << END\n";
  for (const std::string& name : grid.workloads) {
    std::vector<double> steps;
    double least = 0;
    for (const Grid::Column& column : grid.columns) {
      steps.push_back(mean_step(evidence, name, column.entrant));
      if (steps.back() > 0 && (least == 0 || steps.back() < least)) least = steps.back();
    }
    data += quoted(name);
    for (const double step : steps) {
      data += step > 0 ? fmt::format(" {:.4f}", step / least) : " NaN";
    }
    data += "\n";
  }
  data += "END\n";
  std::string script = data;
  script += fmt::format(
      "set title {}\nset ylabel 'step over the least of its row'\nset style data histograms\n"
      "set style histogram clustered gap 2\nset style fill solid 0.85 noborder\n"
      "set yrange [0:*]\nset key outside right top\nset xtics rotate by -12\nplot ",
      quoted(fmt::format("{} ({})", grid.text, to_string(version))));
  for (std::size_t i = 0; i < grid.columns.size(); ++i) {
    script += fmt::format("{}$data using {}:xtic(1) title {}", i == 0 ? "" : ", ", i + 2,
                          quoted(grid.columns[i].title));
  }
  plot(path, script, 960, 420);
}

std::vector<std::pair<double, double>> curve_of(const Evidence& evidence, const std::string& name,
                                                const std::string& entrant, Spent spent) {
  constexpr int kPoints = 60;
  const int seeds = evidence.seeds(name, entrant);
  double last = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    last = std::max(last, spent_by(evidence.run(name, entrant, seed), spent));
  }
  std::vector<std::pair<double, double>> curve;
  if (last <= 0) return curve;
  for (int i = 1; i <= kPoints; ++i) {
    const double at = last * i / kPoints;
    std::vector<double> steps;
    for (int seed = 1; seed <= seeds; ++seed) {
      steps.push_back(
          best_by(evidence.run(name, entrant, seed), spent, at, evidence.stage(name).single));
    }
    const double median = median_of(steps);
    if (std::isfinite(median)) curve.emplace_back(at, median);
  }
  return curve;
}

bool draw_curves(const std::string& path, const Entrants& entrants, const Evidence& evidence,
                 Spent spent) {
  std::string script;
  std::string panels;
  int blocks = 0;
  int drawn = 0;
  for (const auto& [name, placers] : entrants) {
    std::string lines;
    for (const std::string& placer : placers) {
      const auto curve = curve_of(evidence, name, placer, spent);
      if (curve.size() < 2 || evidence.run(name, placer, 1).history.size() < 2) continue;
      script += fmt::format("$curve{} << END\n", blocks);
      for (const auto& [x, y] : curve) script += fmt::format("{:.6g} {:.5f}\n", x, y);
      script += "END\n";
      lines += fmt::format("{}$curve{} using 1:2 with lines lw 2 title {}",
                           lines.empty() ? "" : ", ", blocks++, quoted(placer));
    }
    if (lines.empty()) continue;
    panels += fmt::format("set title {}\nplot {}\n", quoted(name), lines);
    ++drawn;
  }
  if (drawn == 0) return false;
  script += fmt::format(
      "set multiplot layout {},1\nset xlabel '{}'\n"
      "set ylabel 'best step, over one device'\nset key outside right top\n{}unset multiplot\n",
      drawn, label_of(spent), panels);
  plot(path, script, 960, 300 * drawn);
  return true;
}

bool draw_statements(const std::string& path, const Claim& claim, Version version,
                     const Evidence& evidence) {
  std::vector<JudgedStatement> judged;
  for (const Statement& statement : claim.statements) {
    if (!evidence.has(statement)) continue;
    const std::optional<Ratio> ratio = evidence.ratio(statement);
    if (ratio) judged.push_back({&statement, ratio->interval});
  }
  if (judged.empty()) return false;
  plot(path, statements_script(judged, fmt::format("{} ({})", claim.key, to_string(version))), 1100,
       120 + 52 * static_cast<int>(judged.size()));
  return true;
}

}  // namespace emplace::bench
