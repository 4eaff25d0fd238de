#include "cli/simulate_many.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"

#include "report/simulation_lines.h"

namespace emplace::cli {
namespace {

namespace fs = std::filesystem;

// What is read before anything is simulated, if there is so much already.
constexpr std::size_t kBlock = std::size_t{1} << 22;

// Calls answer(0), ..., answer(count - 1) on several threads and prints what they return in order.
void print_in_order(std::size_t count, int threads,
                    const std::function<std::string(std::size_t)>& answer) {
  std::vector<std::string> answers(count);
  parallel_for(count, threads, [&](std::size_t i) { answers[i] = answer(i); });
  for (const std::string& line : answers) fmt::print("{}", line);
  std::fflush(stdout);
}

std::vector<std::string> placement_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") || name.ends_with(".json.gz")) files.push_back(entry.path());
  }
  if (files.empty()) fail_input("{}: has no placement file; expected .json or .json.gz", folder);
  std::sort(files.begin(), files.end());
  return files;
}

void simulate_folder(const std::string& folder, SimulationLines& lines, int threads,
                     const Session& session) {
  const std::vector<std::string> files = placement_files(folder);
  const std::size_t block = 32 * static_cast<std::size_t>(threads);
  for (std::size_t i = 0; i < files.size() && !session.cancelled; i += block) {
    print_in_order(std::min(block, files.size() - i), threads,
                   [&](std::size_t j) { return lines.answer_file(files[i + j]); });
  }
}

// Lines as they come: those that are there are simulated together, and nobody waits for more.
class LineReader {
 public:
  LineReader(const std::string& path, const Session& session) : path_(path), session_(session) {
    if (path == "-") return;
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_input("{}: cannot be opened: {}", path, std::strerror(errno));
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader() {
    if (descriptor_ != STDIN_FILENO) close(descriptor_);
  }

  // At least one; none at the end, or when interrupted.
  std::vector<std::string> next() {
    std::vector<std::string> lines;
    while (lines.empty() && !ended_ && !session_.cancelled) {
      read_what_is_there();
      std::size_t begin = 0;
      for (std::size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
        lines.push_back(text_.substr(begin, end - begin));
      }
      text_.erase(0, begin);
      if (ended_ && !text_.empty()) lines.push_back(std::move(text_));
    }
    return lines;
  }

 private:
  bool readable(int milliseconds) const {
    pollfd waiting{descriptor_, POLLIN, 0};
    return poll(&waiting, 1, milliseconds) > 0;
  }

  void read_what_is_there() {
    constexpr int kWait = 100;  // so that Ctrl-C is noticed
    std::string buffer(std::size_t{1} << 16, '\0');
    std::size_t taken = 0;
    bool more = readable(kWait);
    while (more && taken < kBlock) {
      const ssize_t count = read(descriptor_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) return;
      if (count < 0) fail_input("{}: cannot be read: {}", path_, std::strerror(errno));
      ended_ = count == 0;
      text_.append(buffer, 0, static_cast<std::size_t>(count));
      taken += static_cast<std::size_t>(count);
      more = !ended_ && readable(0);
    }
  }

  std::string path_;
  const Session& session_;
  int descriptor_ = STDIN_FILENO;
  std::string text_;
  bool ended_ = false;
};

void simulate_lines(const std::string& path, SimulationLines& lines, int threads,
                    const Session& session) {
  LineReader reader(path, session);
  std::size_t number = 0;
  while (true) {
    const std::vector<std::string> block = reader.next();
    if (block.empty()) return;
    print_in_order(block.size(), threads, [&](std::size_t i) {
      if (trim(block[i]).empty()) return std::string();
      return lines.answer(fmt::format("{}", number + i + 1), block[i]);
    });
    number += block.size();
  }
}

}  // namespace

bool is_many(const std::string& path) {
  std::error_code ignored;
  return path == "-" || path.ends_with(".jsonl") || fs::is_directory(path, ignored);
}

void simulate_many(const std::string& path, const std::shared_ptr<const Problem>& problem,
                   const JsonHeader& header, const std::string& scheduler, int threads,
                   Session& session) {
  session.can_be_cancelled = true;
  SimulationLines lines(problem, header.objective.value_or(Objective()), scheduler);
  fmt::print("{}", header_line(header));
  std::fflush(stdout);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    simulate_folder(path, lines, threads, session);
  } else {
    simulate_lines(path, lines, threads, session);
  }
  if (lines.failed()) session.exit_code = kExitBadInput;
}

}  // namespace emplace::cli
