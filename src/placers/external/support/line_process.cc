#include "placers/external/support/line_process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"

extern char** environ;  // NOLINT: POSIX has it in no header

namespace emplace {
namespace {

constexpr int kPollMilliseconds = 20;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void close_once(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

// Two connected ends, gone when the scope is left unless they were taken.
struct Ends {
  int ours = -1;
  int its = -1;

  ~Ends() {
    close_once(ours);
    close_once(its);
  }
};

void never_wait(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

// A group of its own, so that it ends with all that it started, and so that Ctrl-C is ours to pass
// on; and signals as a program expects them.
struct SpawnSettings {
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t files{};

  SpawnSettings(int its_input, int its_output) {
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, its_input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, its_output, STDOUT_FILENO);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
  }
};

}  // namespace

std::vector<std::string> command_words(std::string_view command) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    char c = command[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else {
      if (c == '\\' && quote != '\'' && i + 1 < command.size()) c = command[++i];
      words.back() += c;
    }
  }
  if (quote != 0)
    fail_option("command '{}': expected {} at the end of a quotation", command, quote);
  if (words.empty()) {
    fail_option(
        "command is missing: expected a program with its arguments, e.g. "
        "exec(command=python3 my_placer.py)");
  }
  return words;
}

LineProcess::LineProcess(const std::vector<std::string>& words) {
  const auto refuse = [&] {
    fail(ErrorKind::kSystem, "no connection to '{}': {}", words[0], std::strerror(errno));
  };
  // A socket takes what is sent after the program has ended without a signal to us.
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) refuse();
  Ends input{pair[0], pair[1]};
  if (pipe2(pair, O_CLOEXEC) != 0) refuse();
  Ends output{pair[0], pair[1]};
  start(words, input.its, output.its);
  never_wait(output.ours);
  to_ = std::exchange(input.ours, -1);
  from_ = std::exchange(output.ours, -1);
}

void LineProcess::start(const std::vector<std::string>& words, int its_input, int its_output) {
  const SpawnSettings settings(its_input, its_output);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int error = posix_spawnp(&pid_, arguments[0], &settings.files, &settings.attributes,
                                 arguments.data(), environ);
  if (error != 0) {
    fail_option(
        "'{}' cannot be started: {}; expected a program, in a folder of PATH or with its path",
        words[0], std::strerror(error));
  }
}

LineProcess::~LineProcess() {
  // Before its status is taken, so that the number is still its own.
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close_once(to_);
  close_once(from_);
}

void LineProcess::send(std::string_view line) {
  unsent_.append(line);
  unsent_ += '\n';
  write_some();
}

void LineProcess::write_some() {
  while (sent_ < unsent_.size()) {
    const ssize_t sent =
        ::send(to_, unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      sent_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      break;  // nobody reads any more
    }
  }
  unsent_.clear();
  sent_ = 0;
}

bool LineProcess::ready_to_read() const {
  pollfd waiting{from_, POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

bool LineProcess::read_some() {
  char buffer[1 << 16];
  const ssize_t count = read(from_, buffer, sizeof buffer);
  if (count > 0) received_.append(buffer, static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

bool LineProcess::take_line(std::string& line) {
  const std::size_t end = received_.find('\n', searched_);
  searched_ = end == std::string::npos ? received_.size() : 0;
  if (end == std::string::npos) return false;
  line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return true;
}

LineProcess::Got LineProcess::receive(std::string& line, const std::function<bool()>& give_up) {
  while (true) {
    if (take_line(line)) return Got::kLine;
    if (ended_) return Got::kEnd;
    if (received_.size() > limits::kPlacerLine) return Got::kTooLong;
    if (give_up()) return Got::kNothing;
    pollfd waiting[2] = {{from_, POLLIN, 0}, {unsent_.empty() ? -1 : to_, POLLOUT, 0}};
    const int ready = poll(waiting, 2, kPollMilliseconds);
    if (ready == 0 && wait_until_ended(0)) {
      // What it has started may hold its output open.
      while (ready_to_read()) {
        if (!read_some()) break;
      }
      ended_ = true;
    }
    if (ready <= 0) continue;
    if (waiting[1].revents != 0) write_some();
    if (waiting[0].revents != 0) ended_ = !read_some();
  }
}

bool LineProcess::wait_until_ended(double seconds) {
  const auto start = Clock::now();
  while (true) {
    end_ = {};
    // An error: somebody else has taken its status.
    if (waitid(P_PID, static_cast<id_t>(pid_), &end_, WEXITED | WNOHANG | WNOWAIT) != 0)
      return true;
    if (end_.si_pid != 0) return true;
    if (seconds_since(start) > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void LineProcess::finish(double seconds) {
  close_once(to_);
  unsent_.clear();
  wait_until_ended(seconds);
}

std::string LineProcess::how_it_ended() {
  constexpr double kMoment = 0.5;
  if (!wait_until_ended(kMoment)) return "closed its standard output";
  if (end_.si_code == CLD_EXITED) return fmt::format("ended with exit code {}", end_.si_status);
  return fmt::format("was ended by signal {} ({})", end_.si_status, strsignal(end_.si_status));
}

}  // namespace emplace
