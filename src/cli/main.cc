#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"

#include "cli/blas.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "cli/page_commands.h"
#include "cli/ranks.h"
#include "exec/runtime.h"
#include "report/text_style.h"

namespace {

using namespace emplace;

cli::Session session;

// What schedulers send, and a terminal that is closed, is as good as Ctrl-C. A second one ends the
// program as usual, as does the first while there is no search to end.
void on_interrupt(int signal) {
  std::signal(signal, SIG_DFL);
  session.cancelled.store(true);
  if (!session.can_be_cancelled) std::raise(signal);
}

// What is piped is as wide as usual.
void follow_terminal() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return;
  if (size.ws_col > 0) emplace::set_text_width(size.ws_col);
}

// As the C library does: the first of these that is set says it. Without UTF-8, texts are ASCII.
void follow_locale() {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (locale.empty() && value != nullptr) locale = value;
  }
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool utf8 = locale.find("utf-8") != locale.npos || locale.find("utf8") != locale.npos;
  set_ascii_only(!utf8);
}

int fail(const char* message) {
  cli::say(fmt::format("emplace: {}\n", message));
  return cli::kExitBadInput;
}

// Without asking for memory.
int report_no_memory() {
  std::fputs("emplace: out of memory\n", stderr);
  return cli::kExitBadInput;
}

// What libraries do on the way out may need memory too, where nothing can be thrown any more.
[[noreturn]] void on_terminate() {
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    std::_Exit(report_no_memory());
  } catch (...) {
  }
  std::abort();
}

// Else the first file that is opened would take the place of a stream that was closed.
void open_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
}

void expect_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto before = std::signal(signal, on_interrupt);
    if (signal == SIGHUP && before == SIG_IGN) std::signal(signal, SIG_IGN);  // under nohup
  }
  // Whoever read our messages may have left; files are written all the same.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may grow no more is one that cannot be written
}

int run(int argc, char** argv) {
  open_streams();
  cli::prepare_blas();
  follow_terminal();
  follow_locale();
  cli::CommandLine line("emplace", "Decides where every operation of a neural network should run.",
                        "emplace " EMPLACE_VERSION_TEXT);
  session.build = EMPLACE_VERSION_TEXT;
  cli::Command& root = line.root();
  root.footer(
      "Try: emplace compare examples/gnmt4-b256.json.gz --cluster 4xp100\n"
      "Exit codes: 0 fine, 1 no placement fits, 2 bad usage or input.");
  cli::add_place(root, session);
  cli::add_compare(root, session);
  cli::add_partition(root, session);
  cli::add_select(root, session);
  cli::add_simulate(root, session);
  cli::add_info(root, session);
  cli::add_export(root, session);
  cli::add_import(root, session);
  cli::add_show(root, session);
  cli::add_cluster(root, session);
  cli::add_profile_fit(root, session);
  cli::add_zoo(root, session);
  cli::add_report(root, session);
#ifdef EMPLACE_LEARN
  cli::add_profile(root, session);
  cli::add_run(root, session);
  cli::add_train(root, session);
#endif
  cli::add_list(root, session);
  session.words.assign(argv + 1, argv + argc);
  session.command_line = cli::as_typed(session.words);
  cli::add_completion(root, line);
  expect_signals();
  if (cli::leaves_words_to_first(line.outline(), session.words)) session.helps = true;
  if (const auto code = line.parse(argc, argv, cli::kExitBadInput)) return *code;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    // Whoever has read enough, as `head` has, needs no telling.
    return errno == EPIPE ? cli::kExitBadInput : fail("standard output could not be written");
  }
  const int code = session.output_failed ? cli::kExitBadInput : session.exit_code;
#ifdef EMPLACE_LEARN
  if (exec::threads_left_alone() > 0) std::_Exit(code);
#endif
  return code;
}

int guarded_run(int argc, char** argv) {
  std::set_terminate(on_terminate);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return report_no_memory();
  } catch (const std::exception& error) {
    const auto* of_system = dynamic_cast<const std::system_error*>(&error);
    if (of_system != nullptr && of_system->code() == std::errc::broken_pipe) {
      return cli::kExitBadInput;
    }
    try {
      return fail(error.what());
    } catch (const std::bad_alloc&) {
      return report_no_memory();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int code = guarded_run(argc, argv);
  if (session.helps) code = cli::kExitFine;
  if (!session.among_ranks) return code;
  // Whether all others have left or some were lost, MPI has nothing more to do here.
  cli::note_end_of_rank(code);
  std::fflush(nullptr);
  std::_Exit(code);
}
