#include "cluster/runs_on.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace emplace {
namespace {

constexpr int kMostCores = 4096;

[[noreturn]] void fail_runs_on(std::string_view text) {
  fail_input("runs_on: is '{}', expected cores such as 'cores 0-3,8', or a GPU such as 'cuda:0'",
             text);
}

std::optional<int> core_number(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 0 && number < kMostCores ? std::optional(number) : std::nullopt;
}

// "0-3,8"; nothing when it is no such list, or names a core twice.
std::optional<std::vector<int>> core_list(std::string_view text) {
  std::vector<int> cores;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const std::size_t dash = range.find('-');
    const auto low = core_number(range.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : core_number(range.substr(dash + 1));
    if (!low || !high || *high < *low) return std::nullopt;
    for (int core = *low; core <= *high; ++core) cores.push_back(core);
  }
  std::sort(cores.begin(), cores.end());
  const bool twice = std::adjacent_find(cores.begin(), cores.end()) != cores.end();
  return cores.empty() || twice ? std::nullopt : std::optional(cores);
}

}  // namespace

RunsOn parse_runs_on(std::string_view text) {
  RunsOn where;
  std::string_view rest = text;
  constexpr std::string_view kCuda = "cuda:";
  if (rest.starts_with(kCuda)) {
    const std::size_t space = rest.find(' ');
    where.cuda = core_number(rest.substr(kCuda.size(), space - kCuda.size()));
    if (!where.cuda) fail_runs_on(text);
    if (space == std::string_view::npos) return where;
    rest.remove_prefix(space + 1);
  }
  constexpr std::string_view kCores = "cores ";
  if (!rest.starts_with(kCores)) fail_runs_on(text);
  const auto cores = core_list(rest.substr(kCores.size()));
  if (!cores) fail_runs_on(text);
  where.cores = *cores;
  return where;
}

bool is_gpu(const Device& device) {
  return !device.runs_on.empty() && parse_runs_on(device.runs_on).cuda.has_value();
}

std::string core_list_text(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", cores[i]) : fmt::format("{}-{}", cores[i], cores[last]);
    i = last + 1;
  }
  return text;
}

std::string runs_on_text(const RunsOn& where) {
  std::string text = where.cuda ? fmt::format("cuda:{}", *where.cuda) : "";
  if (where.cores.empty()) return text;
  return text + (text.empty() ? "cores " : " cores ") + core_list_text(where.cores);
}

}  // namespace emplace
