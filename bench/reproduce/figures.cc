#include "reproduce/figures.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"

#include "placers/all.h"

#include "io/file.h"

namespace emplace::bench {
namespace {

std::string file_name(const std::string& key, Version version) {
  std::string name = key + (version == Version::kPaper ? "-paper" : "-emplace");
  std::string result;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-') {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ' ') {
      result += '-';
    }
  }
  return result;
}

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

// How many seeds, of which code; nothing where a run is missing.
std::string origin_of(const Entrants& entrants, const Evidence& evidence) {
  std::set<int> seeds;
  std::set<std::string> codes;
  for (const auto& [name, placers] : entrants) {
    for (const std::string& placer : placers) {
      if (!evidence.has(name, placer)) return "";
      codes.merge(evidence.codes(name, placer));
      const bool chance = all_placers().info(parse_entrant(placer).placer.key).randomized;
      if (chance) seeds.insert(evidence.seeds(name, placer));
    }
  }
  if (seeds.empty()) seeds.insert(1);
  return fmt::format("Seeds: {}. Code: {}.", fmt::join(seeds, ", "), fmt::join(codes, ", "));
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

// A group of bars a workload, relative to the best of its row.
void draw_grid(const Grid& grid, Version version, const Evidence& evidence,
               const std::string& folder) {
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
  plot(fmt::format("{}/{}.svg", folder, file_name(grid.key, version)), script, 960, 420);
}

// The best step so far in parts of one device's, the median of the seeds, at so many points.
std::vector<std::pair<double, double>> curve_of(const Evidence& evidence, const std::string& name,
                                                const std::string& entrant) {
  constexpr int kPoints = 60;
  const int seeds = evidence.seeds(name, entrant);
  std::int64_t last = 1;
  for (int seed = 1; seed <= seeds; ++seed) {
    last = std::max(last, evidence.run(name, entrant, seed).evaluations);
  }
  std::vector<std::pair<double, double>> curve;
  for (int i = 1; i <= kPoints; ++i) {
    const double at = static_cast<double>(last) * i / kPoints;
    std::vector<double> steps;
    for (int seed = 1; seed <= seeds; ++seed) {
      double best = 0;
      for (const RunProgress& point : evidence.run(name, entrant, seed).history) {
        if (static_cast<double>(point.evaluations) > at) break;
        if (point.fits) best = static_cast<double>(point.step);
      }
      if (best > 0) steps.push_back(best / static_cast<double>(evidence.stage(name).single));
    }
    if (2 * steps.size() > static_cast<std::size_t>(seeds)) {
      curve.emplace_back(at, median_of(steps));
    }
  }
  return curve;
}

// One panel a workload.
void draw_curves(const std::string& key, Version version, const Entrants& entrants,
                 const Evidence& evidence, const std::string& folder) {
  std::string script;
  std::string panels;
  int blocks = 0;
  int drawn = 0;
  for (const auto& [name, placers] : entrants) {
    std::string lines;
    for (const std::string& placer : placers) {
      const auto curve = curve_of(evidence, name, placer);
      if (curve.size() < 2 || evidence.run(name, placer, 1).history.size() < 2) continue;
      script += fmt::format("$curve{} << END\n", blocks);
      for (const auto& [x, y] : curve) script += fmt::format("{:.1f} {:.5f}\n", x, y);
      script += "END\n";
      lines += fmt::format("{}$curve{} using 1:2 with lines lw 2 title {}",
                           lines.empty() ? "" : ", ", blocks++, quoted(placer));
    }
    if (lines.empty()) continue;
    panels += fmt::format("set title {}\nplot {}\n", quoted(name), lines);
    ++drawn;
  }
  if (drawn == 0) return;
  script += fmt::format(
      "set multiplot layout {},1\nset xlabel 'placements evaluated'\n"
      "set ylabel 'best step, over one device'\nset key outside right top\n{}unset multiplot\n",
      drawn, panels);
  plot(fmt::format("{}/{}-curves.svg", folder, file_name(key, version)), script, 960, 300 * drawn);
}

}  // namespace

// Figures whose runs are not all there stay as they are.
void draw_figures(const Program& program, const Evidence& evidence, const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::string page =
      "# Figures: the papers' claims\n\nDrawn by `build/bench/reproduce --figures`. Curves are the "
      "best step so far, over that of one device; the median of the seeds. Where no code is named, "
      "the figure is an earlier one whose runs are not kept. [What was "
      "found](../../reproduction.md).\n";
  const auto show = [&](const std::string& title, const std::string& file,
                        const std::string& origin) {
    if (!std::filesystem::exists(fmt::format("{}/{}", folder, file))) return;
    page += fmt::format("\n## {}\n![{}]({})\n", title, title, file);
    if (!origin.empty()) page += fmt::format("\n{}\n", origin);
  };
  for (const Part& part : program) {
    const auto curves = [&](const std::string& key, const Entrants& entrants) {
      const std::string origin = origin_of(entrants, evidence);
      if (!origin.empty()) draw_curves(key, part.version, entrants, evidence, folder);
      show(fmt::format("{}, {}: learning curves", key, to_string(part.version)),
           file_name(key, part.version) + "-curves.svg", origin);
    };
    for (const Grid& grid : part.grids) {
      const std::string origin = origin_of(entrants_of({{part.version, {}, {grid}}}), evidence);
      if (!origin.empty()) draw_grid(grid, part.version, evidence, folder);
      show(fmt::format("{}, {}", grid.key, to_string(part.version)),
           file_name(grid.key, part.version) + ".svg", origin);
      // More lines than these nobody can tell apart.
      if (grid.columns.size() <= 6) curves(grid.key, entrants_of({{part.version, {}, {grid}}}));
    }
    for (const Claim& claim : part.claims) {
      curves(claim.key, entrants_of({{part.version, {claim}, {}}}));
    }
  }
  write_file(fmt::format("{}/README.md", folder), page);
}

}  // namespace emplace::bench
