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
  CLI::App app("Decides where every operation of a neural network should run.", "emplace");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("emplace " EMPLACE_VERSION));
  app.footer(
      "Try: emplace compare examples/gnmt4-b256.json.gz --cluster 4xp100\n"
      "Exit codes: 0 fine, 1 no placement fits, 2 bad usage or input.");
  cli::add_place(app, session);
  cli::add_compare(app, session);
  cli::add_partition(app, session);
  cli::add_simulate(app, session);
  cli::add_export(app, session);
  cli::add_cluster(app, session);
  cli::add_profile_fit(app, session);
  cli::add_zoo(app, session);
#ifdef EMPLACE_LEARN
  cli::add_train(app, session);
#endif
  cli::add_list(app, session);
  std::signal(SIGINT, on_interrupt);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kExitFine : cli::kExitBadInput;
  } catch (const Error& error) {
    return report(error.what());
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
