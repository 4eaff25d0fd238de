#include <csignal>
#include <cstdio>
#include <exception>

#include <fmt/core.h>

#include "base/error.h"

#include "cli/blas.h"
#include "cli/command.h"

namespace {

using namespace emplace;

cli::Session session;

// A second Ctrl-C ends the program as usual.
void on_interrupt(int signal) {
  session.cancelled.store(true);
  std::signal(signal, SIG_DFL);
}

int report(const char* message) {
  fmt::print(stderr, "emplace: {}\n", message);
  return cli::kExitBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  cli::prepare_blas();
  cli::CommandLine line("emplace", "Decides where every operation of a neural network should run.",
                        "emplace " EMPLACE_VERSION);
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
  cli::add_cluster(root, session);
  cli::add_profile_fit(root, session);
  cli::add_zoo(root, session);
#ifdef EMPLACE_LEARN
  cli::add_train(root, session);
#endif
  cli::add_list(root, session);
  std::signal(SIGINT, on_interrupt);
  try {
    if (const auto code = line.parse(argc, argv, cli::kExitBadInput)) return *code;
  } catch (const std::bad_alloc&) {
    return report("out of memory");
  } catch (const std::exception& error) {
    return report(error.what());
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return report("standard output could not be written");
  }
  return session.exit_code;
}
