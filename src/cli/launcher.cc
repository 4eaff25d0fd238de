// What mpirun does not do by itself: it forwards output through pipes, so that there would be no
// terminal to draw on, and mixes it with its own remarks on lost ranks; it turns Ctrl-C into the
// death of all; it returns the exit code of whichever rank ended badly; and it waits for ever when
// a machine is lost. So rank 0 opens the launcher's own streams and leaves its process id and exit
// code in a folder that both see. Where it runs on another machine, output comes through mpirun.
#include "cli/launcher.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/read_bytes.h"

#include "cli/messages.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "report/text_style.h"

namespace emplace::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kFolderVariable = "EMPLACE_LAUNCHER";
constexpr auto kGlance = std::chrono::milliseconds(20);
// Between two looks at rank 0, whose processor time the ranks would miss: what mpirun says, its end
// and signals are noticed at once.
constexpr auto kLook = std::chrono::milliseconds(200);
// How long mpirun may take to end once rank 0 has, and to be killed after.
constexpr auto kPatience = std::chrono::seconds(3);

// Of this machine since it was started.
std::string boot_id() {
  try {
    return read_bytes("/proc/sys/kernel/random/boot_id");
  } catch (const Error&) {
    return {};
  }
}

std::optional<int> number_in(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  try {
    return std::stoi(read_bytes(file.string()));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

class SharedFolder {
 public:
  SharedFolder() {
    std::string name = (fs::temp_directory_path() / "emplace-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      fail(ErrorKind::kSystem, "{}: cannot be made: {}", name, std::strerror(errno));
    }
    path_ = name;
    write_file((path_ / "boot").string(), boot_id());
    const std::string streams = fmt::format("/proc/{}/fd/", ::getpid());
    fs::create_symlink(streams + "1", path_ / "out");
    fs::create_symlink(streams + "2", path_ / "err");
  }
  ~SharedFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::vector<std::string> mpirun_words(int ranks, const std::vector<std::string>& words) {
  std::vector<std::string> all{
      "mpirun", "--enable-recovery", "--oversubscribe", "--bind-to", "none",
      // What recovery was tried with; others may end all with one.
      "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp",
      // Many may share a core.
      "--mca", "mpi_yield_when_idle", "1",
      // Else three pieces of a tensor are on their way at a time, and then both sides wait for the
      // other's thread to wake up.
      "--mca", "pml_ob1_send_pipeline_depth", "64",
      // Else a message dies with its sender, and whoever reads it too.
      "--mca", "btl_vader_single_copy_mechanism", "none", "-x", kFolderVariable};
  if (::geteuid() == 0) all.emplace_back("--allow-run-as-root");
  all.insert(all.end(), {"-n", std::to_string(ranks), fs::read_symlink("/proc/self/exe").string()});
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// mpirun as a child, which dies with this process.
class Mpirun {
 public:
  explicit Mpirun(const std::vector<std::string>& words) {
    int remarks[2];
    int failure[2];
    if (::pipe2(remarks, O_CLOEXEC) != 0 || ::pipe2(failure, O_CLOEXEC) != 0) {
      fail(ErrorKind::kSystem, "no pipe: {}", std::strerror(errno));
    }
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
      // Out of reach of the terminal's signals, which the launcher forwards as it sees fit.
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) ::_exit(127);
      ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
      ::dup2(remarks[1], STDERR_FILENO);
      for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) {
        std::signal(signal, SIG_DFL);
      }
      ::execvp(arguments[0], arguments.data());
      const int reason = errno;
      [[maybe_unused]] const auto written = ::write(failure[1], &reason, sizeof reason);
      ::_exit(127);
    }
    ::close(remarks[1]);
    ::close(failure[1]);
    remarks_ = remarks[0];
    int reason = pid_ < 0 ? errno : 0;
    [[maybe_unused]] const auto got = ::read(failure[0], &reason, sizeof reason);
    ::close(failure[0]);
    if (reason != 0) {
      fail(ErrorKind::kUnsupported,
           "several ranks need mpirun, of OpenMPI, which cannot be started: {}",
           std::strerror(reason));
    }
  }
  ~Mpirun() { ::close(remarks_); }
  Mpirun(const Mpirun&) = delete;
  Mpirun& operator=(const Mpirun&) = delete;

  // Reads what it says, for a while.
  void listen() {
    pollfd poll{remarks_, POLLIN, 0};
    const auto wait = static_cast<int>(std::chrono::milliseconds(kLook).count());
    if (::poll(&poll, 1, wait) <= 0) return;
    char text[4096];
    const ssize_t size = ::read(remarks_, text, sizeof text);
    constexpr std::size_t kMost = 65'536;
    if (size > 0 && said_.size() < kMost) said_.append(text, static_cast<std::size_t>(size));
    if (size <= 0) std::this_thread::sleep_for(kGlance);
  }
  const std::string& said() const { return said_; }

  // As a shell has it, once it has ended.
  std::optional<int> code() {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void kill(int signal) const { ::kill(pid_, signal); }

 private:
  pid_t pid_ = -1;
  int remarks_ = -1;
  std::string said_;
};

// First kindly, then not.
class Killer {
 public:
  void insist(const Mpirun& mpirun) {
    const Clock::time_point now = Clock::now();
    if (!since_) {
      since_ = now;
      mpirun.kill(SIGTERM);
    } else if (now - *since_ > kPatience) {
      since_ = now;
      mpirun.kill(SIGKILL);
    }
  }

 private:
  std::optional<Clock::time_point> since_;
};

}  // namespace

int launch_ranks(int ranks, Session& session) {
  const SharedFolder folder;
  ::setenv(kFolderVariable, folder.path().c_str(), 1);
  Mpirun mpirun(mpirun_words(ranks, session.words));
  session.can_be_cancelled = true;
  bool forwarded = false;
  Killer killer;
  std::optional<int> first;                // rank 0's process
  std::optional<Clock::time_point> ended;  // rank 0
  std::optional<int> ended_with;           // mpirun
  while (!ended_with) {
    mpirun.listen();
    ended_with = mpirun.code();
    if (!first) first = number_in(folder.path() / "pid");
    if (session.cancelled && !forwarded) {
      forwarded = first && ::kill(*first, SIGINT) == 0;
      if (!forwarded) killer.insist(mpirun);  // which may be busy starting ranks
    }
    const bool gone = first && ::kill(*first, 0) != 0 && errno == ESRCH;
    if (number_in(folder.path() / "code")) {
      if (!ended) ended = Clock::now();
      if (Clock::now() - *ended > kPatience) killer.insist(mpirun);
    } else if (gone) {
      killer.insist(mpirun);
    }
  }
  struct stat stream {};
  // Rank 0 has written to files, but not moved on where this process, and the shell after it,
  // write.
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::fstat(file, &stream) == 0 && S_ISREG(stream.st_mode)) ::lseek(file, 0, SEEK_END);
  }
  // Rank 0 cannot open those, and has spoken to mpirun.
  if (::fstat(STDERR_FILENO, &stream) == 0 && S_ISSOCK(stream.st_mode)) say(mpirun.said());
  if (const auto code = number_in(folder.path() / "code")) return *code;
  if (!number_in(folder.path() / "pid")) {
    say(mpirun.said());
    return *ended_with;
  }
  say("emplace: rank 0 ended without an answer\n");
  return 128 + SIGKILL;
}

std::string launcher_folder() {
  const char* folder = std::getenv(kFolderVariable);
  return folder != nullptr ? folder : "";
}

void attach_to_launcher(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code ignored;
  if (!fs::exists(folder, ignored) || read_bytes(folder + "/boot") != boot_id()) return;
  for (const auto& [name, stream] : {std::pair("/out", STDOUT_FILENO), {"/err", STDERR_FILENO}}) {
    // Not those of sockets: then it goes by way of mpirun.
    const int opened = ::open((folder + name).c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    if (opened < 0) continue;
    ::dup2(opened, stream);
    ::close(opened);
  }
  if (::isatty(STDOUT_FILENO) != 0) set_text_width(terminal_size(STDOUT_FILENO).columns);
  write_file(folder + "/pid", std::to_string(::getpid()));
}

void tell_launcher(const std::string& folder, int exit_code) {
  std::error_code ignored;
  if (folder.empty() || !fs::exists(folder, ignored)) return;
  try {
    write_file(folder + "/code", std::to_string(exit_code));
  } catch (const Error&) {
    // Then mpirun says it.
  }
}

}  // namespace emplace::cli
