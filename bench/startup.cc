// How long the program takes to start, and how much memory: the median of several runs of commands
// whose own work is next to nothing. `bench/startup [PROGRAM]`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Start {
  double milliseconds = 0;
  double megabytes = 0;
};

Start run(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fmt::print(stderr, "{} {} failed\n", words[0], words[1]);
    std::exit(2);
  }
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  return {time.count(), static_cast<double>(usage.ru_maxrss) / 1024};
}

void report(const std::vector<std::string>& words) {
  constexpr int kRuns = 21;
  std::vector<double> times;
  double megabytes = 0;
  for (int i = 0; i < kRuns; ++i) {
    const Start start = run(words);
    times.push_back(start.milliseconds);
    megabytes = std::max(megabytes, start.megabytes);
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  std::string command;
  for (std::size_t i = 1; i < words.size(); ++i) command += " " + words[i];
  fmt::print("{:>7.1f} ms {:>7.1f} MB  emplace{}\n", times[kRuns / 2], megabytes, command);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string program = argc > 1 ? argv[1] : "build/emplace";
  if (program == "--help") {
    fmt::print(
        "usage: startup [PROGRAM]\nMedian time and largest memory of commands with next to "
        "no work.\n");
    return 0;
  }
  const std::string model = "zoo:vgg-16:training=false";
  const std::string placement =
      (std::filesystem::temp_directory_path() / fmt::format("emplace-startup-{}.json", getpid()))
          .string();
  run({program, "place", model, "-c", "2xp100", "--placer", "single", "-o", placement});
  report({program, "--version"});
  report({program, "list"});
  report({program, "simulate", model, placement, "-c", "2xp100"});
  report({program, "place", model, "-c", "2xp100", "--placer", "heft"});
  report({program, "place", model, "-c", "2xp100"});
  std::remove(placement.c_str());
}
