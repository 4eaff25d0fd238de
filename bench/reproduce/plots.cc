#include "reproduce/plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

#include "io/file.h"

namespace emplace::bench {
namespace {

constexpr std::string_view kOriginBegin = "<!-- ";
constexpr std::string_view kOriginEnd = " -->\n";

// Hands a script to gnuplot, which writes to a name that is only then the figure's. Its last line
// says what it is of.
void plot(const std::string& path, const std::string& script, int width, int height,
          const std::string& origin) {
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
  write_file(path,
             fmt::format("{}{}{}{}", read_file(unfinished), kOriginBegin, origin, kOriginEnd));
  std::filesystem::remove(unfinished);
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

// gnuplot takes labels at axes for formats, so there must be no "%".
std::string without_percent(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '%' ? "percent" : std::string(1, c);
  return result;
}

// In lines that are ended at the first chance.
std::string in_lines(const std::string& text, std::size_t line = 45) {
  std::string label;
  std::size_t length = 0;
  for (const char c : text) {
    label += c;
    if (++length < line || (c != ' ' && c != ',')) continue;
    label += "\\n";
    length = 0;
  }
  return label;
}

// What a key of its own stands beside the plot with, of which it leaves the same room to all.
constexpr const char* kKeyBeside =
    "set rmargin at screen 0.68\nset key outside right top Left reverse samplen 2\n";
constexpr std::size_t kKeyLine = 26;

std::string first_word(const std::string& text) {
  return text.substr(0, text.find(' '));
}

// A colour mixed with white.
std::string lighter(unsigned colour, double share) {
  std::string text = "#";
  for (const unsigned shift : {16U, 8U, 0U}) {
    const double part = colour >> shift & 0xffU;
    text += fmt::format("{:02x}", static_cast<unsigned>(part + (255 - part) * share));
  }
  return text;
}

// With the workloads where the text alone would stand there twice.
std::vector<std::string> statement_labels(const Claim& claim) {
  std::map<std::string, int> times;
  for (const Statement& statement : claim.statements) ++times[statement.text];
  std::vector<std::string> labels;
  for (const Statement& statement : claim.statements) {
    const bool repeats = times.at(statement.text) > 1;
    labels.push_back(
        repeats ? fmt::format("{} on {}", statement.text, fmt::join(statement.workloads, ", "))
                : statement.text);
  }
  return labels;
}

// What is drawn of a claim's statements.
struct StatementRows {
  std::string points;
  std::string bands;
  std::string notes;  // in place of points
  std::string names;
  double low = 0.8;
  double high = 1.25;
  std::ptrdiff_t most_lines = 1;  // of a name

  void add_name(const std::string& text, int row) {
    const std::string label = in_lines(without_percent(text));
    most_lines = std::max(most_lines, 1 + std::count(label.begin(), label.end(), '\\'));
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", quoted(label), row);
  }
  void add_point(const MeanInterval& interval, int row) {
    // What is further away is cut off.
    constexpr double kFurthest = 30;
    const bool bounded = std::isfinite(interval.high);
    const double from = std::max(1 / kFurthest, bounded ? interval.low : interval.mean);
    const double to = std::min(kFurthest, bounded ? interval.high : interval.mean);
    low = std::min({low, from, interval.mean});
    high = std::max({high, to, interval.mean});
    points += fmt::format("{:.5f} {} {:.5f} {:.5f}\n", interval.mean, row, from, to);
  }
  void add_note(const std::string& text, int row) {
    notes += fmt::format("set label {} at graph 0.98, first {} right tc rgb '#888888' front\n",
                         quoted(text), row);
  }
  void add_band(const Statement& statement, int row) {
    const std::string least =
        statement.least > 0 ? fmt::format("first {}", statement.least) : "graph 0";
    bands += fmt::format(
        "set object rectangle from {}, first {} to first {}, first {} fc rgb '#cfe8cf' fs noborder "
        "behind\n",
        least, row - 0.35, statement.most, row + 0.35);
  }
};

// One each, the first on top: what is claimed as a band, what was measured as a line.
StatementRows statement_rows(const Claim& claim, const Evidence& evidence) {
  StatementRows rows;
  const std::vector<std::string> labels = statement_labels(claim);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Statement& statement = claim.statements[i];
    const int row = -static_cast<int>(i);
    const bool has = evidence.has(statement);
    const std::optional<Ratio> ratio = has ? evidence.ratio(statement) : std::optional<Ratio>();
    if (ratio) {
      rows.add_point(ratio->interval, row);
    } else {
      rows.add_note(has ? "nothing that fits was found" : "not run", row);
    }
    rows.add_band(statement, row);
    rows.add_name(labels[i], row);
  }
  return rows;
}

}  // namespace

std::vector<std::string> colours_of(const std::vector<std::string>& titles) {
  constexpr std::array<unsigned, 8> kColours{0x1f4e79, 0xd9822b, 0x2e8b57, 0xb33a3a,
                                             0x7a5aa6, 0x8c6d46, 0x4a9fc9, 0x777777};
  const bool few = titles.size() <= kColours.size();
  std::vector<std::string> families;
  for (const std::string& title : titles) families.push_back(few ? title : first_word(title));
  std::vector<std::string> seen;
  std::vector<std::string> colours;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const auto known = std::find(seen.begin(), seen.end(), families[i]);
    const auto family = static_cast<std::size_t>(known - seen.begin());
    if (known == seen.end()) seen.push_back(families[i]);
    const auto all = std::count(families.begin(), families.end(), families[i]);
    const auto before = std::count(families.begin(),
                                   families.begin() + static_cast<std::ptrdiff_t>(i), families[i]);
    constexpr double kLightest = 0.75;
    colours.push_back(lighter(kColours[family % kColours.size()],
                              kLightest * static_cast<double>(before) / static_cast<double>(all)));
  }
  return colours;
}

std::string grid_script(const Grid& grid, Version version, const Evidence& evidence) {
  constexpr double kGap = 2;  // of bars
  std::string data = "$data << END\n";
  std::string notes;
  const double bar = 1 / (static_cast<double>(grid.columns.size()) + kGap);
  for (std::size_t row = 0; row < grid.workloads.size(); ++row) {
    const std::string& name = grid.workloads[row];
    std::vector<double> steps;
    double least = 0;
    for (const Grid::Column& column : grid.columns) {
      steps.push_back(mean_step(evidence, name, column.entrant));
      if (steps.back() > 0 && (least == 0 || steps.back() < least)) least = steps.back();
    }
    data += quoted(name);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      data += steps[i] > 0 ? fmt::format(" {:.4f}", steps[i] / least) : " NaN";
      if (steps[i] > 0) continue;
      const double middle = (static_cast<double>(steps.size()) - 1) / 2;
      notes += fmt::format(
          "set label 'does not fit' at first {:.4f}, graph 0.02 rotate by 90 left font ',10' tc "
          "rgb '#666666' front\n",
          static_cast<double>(row) + (static_cast<double>(i) - middle) * bar);
    }
    data += "\n";
  }
  std::vector<std::string> titles;
  for (const Grid::Column& column : grid.columns) titles.push_back(column.title);
  const std::vector<std::string> colours = colours_of(titles);
  std::string script = data + "END\n";
  script += fmt::format(
      "set title {}\nset ylabel 'step over the least of its row'\nset style data histograms\n"
      "set style histogram clustered gap {}\nset style fill solid noborder\n"
      "set yrange [0:*]\nset key outside right top\nset xtics rotate by -12\n{}plot ",
      quoted(fmt::format("{} ({})", grid.text, to_string(version))), kGap, notes);
  for (std::size_t i = 0; i < grid.columns.size(); ++i) {
    script += fmt::format("{}$data using {}:xtic(1) title {} lc rgb '{}'", i == 0 ? "" : ", ",
                          i + 2, quoted(titles[i]), colours[i]);
  }
  return script;
}

void draw_grid(const std::string& path, const Grid& grid, Version version, const Evidence& evidence,
               const std::string& origin) {
  plot(path, grid_script(grid, version, evidence), 960, 420, origin);
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

CurveNames curve_names(const std::vector<std::string>& entrants) {
  std::vector<PlacerRun> runs;
  for (const std::string& entrant : entrants) runs.push_back(parse_entrant(entrant));
  OptionValues common = runs.front().placer.options;
  for (const PlacerRun& run : runs) {
    const OptionValues& own = run.placer.options;
    std::erase_if(common, [&](const auto& option) {
      return std::find(own.begin(), own.end(), option) == own.end();
    });
  }
  if (runs.size() == 1) common.clear();
  CurveNames names;
  for (const auto& [option, value] : common) {
    names.common += fmt::format("{}{}={}", names.common.empty() ? "" : ", ", option, value);
  }
  for (PlacerRun& run : runs) {
    std::erase_if(run.placer.options, [&](const auto& option) {
      return std::find(common.begin(), common.end(), option) != common.end();
    });
    names.lines.push_back(run.placer.to_string());
    if (run.scheduler != kOwnSchedule) names.lines.back() += "@" + run.scheduler;
  }
  return names;
}

std::string curves_script(const Entrants& entrants, const Evidence& evidence, Spent spent) {
  std::string script;
  std::string panels;
  int blocks = 0;
  int drawn = 0;
  for (const auto& [name, placers] : entrants) {
    std::vector<std::string> shown;
    for (const std::string& placer : placers) {
      const auto curve = curve_of(evidence, name, placer, spent);
      if (curve.size() < 2 || evidence.run(name, placer, 1).history.size() < 2) continue;
      script += fmt::format("$curve{} << END\n", blocks + static_cast<int>(shown.size()));
      for (const auto& [x, y] : curve) script += fmt::format("{:.6g} {:.5f}\n", x, y);
      script += "END\n";
      shown.push_back(placer);
    }
    if (shown.empty()) continue;
    const CurveNames names = curve_names(shown);
    const std::vector<std::string> colours = colours_of(names.lines);
    std::string lines;
    std::ptrdiff_t most_lines = 1;  // of a name
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const std::string title = in_lines(names.lines[i], kKeyLine);
      most_lines = std::max(most_lines, 1 + std::count(title.begin(), title.end(), '\\'));
      lines += fmt::format("{}$curve{} using 1:2 with lines lw 2 lc rgb '{}' title {}",
                           i == 0 ? "" : ", ", blocks++, colours[i], quoted(title));
    }
    const std::string all = names.common.empty() ? "" : fmt::format(" (all: {})", names.common);
    panels += fmt::format("set key spacing {}\nset title {}\nplot {}\n", most_lines,
                          quoted(name + all), lines);
    ++drawn;
  }
  if (drawn == 0) return "";
  return fmt::format(
      "{}set multiplot layout {},1\nset xlabel '{}'\n"
      "set ylabel 'best step, over one device'\n{}{}unset multiplot\n",
      script, drawn, label_of(spent), kKeyBeside, panels);
}

bool draw_curves(const std::string& path, const Entrants& entrants, const Evidence& evidence,
                 Spent spent, const std::string& origin) {
  const std::string script = curves_script(entrants, evidence, spent);
  if (script.empty()) return false;
  int panels = 0;
  for (std::size_t at = script.find("\nplot "); at != std::string::npos;
       at = script.find("\nplot ", at + 1)) {
    ++panels;
  }
  plot(path, script, 960, 300 * panels, origin);
  return true;
}

bool draw_statements(const std::string& path, const Claim& claim, Version version,
                     const Evidence& evidence, const std::string& origin) {
  const StatementRows rows = statement_rows(claim, evidence);
  if (rows.points.empty()) return false;
  constexpr int kLine = 18;
  const int row = kLine * static_cast<int>(std::max<std::ptrdiff_t>(2, rows.most_lines)) + 8;
  plot(path, statements_script(claim, version, evidence), 1100,
       120 + row * static_cast<int>(claim.statements.size()), origin);
  return true;
}

std::string statements_script(const Claim& claim, Version version, const Evidence& evidence) {
  const StatementRows rows = statement_rows(claim, evidence);
  if (rows.points.empty()) return "";
  const char* tics = rows.high < 3 * rows.low
                         ? "0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 2, 2.5"
                         : "0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20";
  return fmt::format(
      "$points << END\n{}END\n{}{}set title {}\nset logscale x\nset xrange [{:.4f}:{:.4f}]\n"
      "set yrange [{}:0.6]\nset ytics ({})\nset xtics ({})\n"
      "set lmargin at screen 0.42\n"
      "set grid noytics xtics\nunset key\n"
      "set xlabel 'ratio; what is claimed is shaded'\nset bars 0.5\n"
      "set arrow from first 1, graph 0 to first 1, graph 1 nohead lc rgb '#888888'\n"
      "plot $points using 1:2:3:4 with xerrorbars pt 7 ps 0.7 lw 2 lc rgb '#1f4e79'",
      rows.points, rows.bands, rows.notes,
      quoted(fmt::format("{} ({})", claim.key, to_string(version))), rows.low / 1.1,
      rows.high * 1.1, 0.4 - static_cast<double>(claim.statements.size()), rows.names, tics);
}

std::string origin_of_figure(const std::string& path) {
  const std::string text = read_file(path);
  if (!text.ends_with(kOriginEnd)) return "";
  const std::size_t begin = text.rfind(kOriginBegin);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + kOriginBegin.size();
  return text.substr(from, text.size() - kOriginEnd.size() - from);
}

}  // namespace emplace::bench
