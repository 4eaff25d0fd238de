#include "cli/ranks.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"

#include "cli/launcher.h"
#include "cli/messages.h"
#include "dist/local_transport.h"
#include "dist/mpi.h"

namespace emplace::cli {
namespace {

constexpr const char* kNeededBy = "running on several ranks";

std::optional<int> number_in_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::atoi(value);
}

// Which of those that were started together this process is, by mpirun or srun with PMIx; less than
// 0: it was started alone.
int rank_by_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const auto rank = number_in_environment(name)) return *rank;
  }
  return -1;
}

// How many those are. mpirun in an allocation has what it starts on other machines started by srun,
// so Slurm's word is the second.
int size_by_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const auto size = number_in_environment(name)) return std::max(1, *size);
  }
  return 1;
}

// As whoever started them says, before MPI is up and knows. Slurm says "4(x2),3" of machines with
// 4, 4 and 3: the first number will do.
int expected_on_this_machine() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"}) {
    const auto value = number_in_environment(name);
    if (value && *value > 0) return *value;
  }
  return 1;
}

// Whoever starts it as many without MPI would have as many answers. The first says so.
void refuse_ranks_without_mpi() {
  const auto tasks = number_in_environment("SLURM_STEP_NUM_TASKS");
  if (tasks && *tasks >= 2) {
    if (number_in_environment("SLURM_PROCID").value_or(0) > 0) std::_Exit(kExitBadInput);
    fail_option("srun started {} processes that do not know of each other: give srun --mpi=pmix",
                *tasks);
  }
  // PMI-1 or PMI-2, which this MPI need not speak: each would take itself for the only one.
  const auto rank = number_in_environment("PMI_RANK");
  if (!rank || (*rank == 0 && number_in_environment("PMI_SIZE") == 1)) return;
  if (*rank > 0) std::_Exit(kExitBadInput);
  fail_option(
      "it was started by an MPI that OpenMPI does not know of (PMI_RANK is set): start it by "
      "OpenMPI's mpirun, by srun --mpi=pmix, or with --ranks");
}

// What launch_ranks gives mpirun, as far as MPI takes it from here; what mpirun was given holds.
void prepare_mpi() {
  ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  ::setenv("OMPI_MCA_pml_ob1_send_pipeline_depth", "64", 0);
}

void print_nothing() {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

// MPI begins with everybody or not at all: a rank that is lost before it has begun would be waited
// for for ever. The first goes on alone then.
std::unique_ptr<dist::Transport> join_in_time(int rank, dist::PostOptions& options) {
  const int ranks = size_by_environment();
  const double crowded = static_cast<double>(expected_on_this_machine()) / hardware_threads();
  const auto patience =
      std::chrono::duration<double>(20 + options.lost_after + 3 * crowded + 0.05 * ranks);
  auto joined = std::make_shared<std::promise<std::unique_ptr<dist::Transport>>>();
  std::future<std::unique_ptr<dist::Transport>> transport = joined->get_future();
  std::thread([joined] {
    try {
      joined->set_value(dist::join_mpi(kNeededBy));
    } catch (...) {
      joined->set_exception(std::current_exception());
    }
  }).detach();
  if (transport.wait_for(patience) == std::future_status::ready) return transport.get();
  if (rank > 0) std::_Exit(kExitFine);
  note("not all ranks have started; this one goes on alone");
  options.lost_after = 0.1;
  return dist::silent_transport(ranks);
}

void run_as_first(std::unique_ptr<dist::Transport> transport, const dist::PostOptions& options,
                  Session& session, const std::function<void()>& body) {
  dist::Crew crew(std::move(transport), options);
  session.crew = &crew;
  // What is searched for here is in vain then; the crew says why.
  crew.when_failed([&session] { session.cancelled = true; });
  body();
  session.crew = nullptr;
  for (const std::string& text : crew.take_notes()) note(text);
}

void run_as_other(std::unique_ptr<dist::Transport> transport, const dist::PostOptions& options,
                  Session& session, const std::function<void()>& body) {
  dist::Member member(std::move(transport), options, [] { std::_Exit(kExitFine); });
  session.member = &member;
  try {
    body();
  } catch (const std::exception& error) {
    member.fail(error.what());
  }
  session.member = nullptr;
  session.exit_code = kExitFine;
}

}  // namespace

void RankArguments::add_to(Command command, const std::string& after_a_loss) {
  command
      .integer("--ranks", ranks, 1, 100'000,
               "Work as so many processes, which MPI connects; started by mpirun or srun, the "
               "command joins those that were started with it")
      .type("N");
  command
      .text("--lost-after", lost_after,
            fmt::format("Take a rank that says nothing for this long as lost, and {}. Default: 10s",
                        after_a_loss))
      .type("DURATION");
}

dist::PostOptions RankArguments::make(const Session& session) const {
  dist::PostOptions options;
  options.build = session.build;
  if (lost_after.empty()) return options;
  const auto seconds = parse_seconds(lost_after);
  constexpr double kLeast = 0.5;
  if (!seconds || *seconds < kLeast) {
    fail_option("--lost-after {}: expected a duration of half a second or more, such as 30s",
                lost_after);
  }
  options.lost_after = *seconds;
  return options;
}

namespace {

// Whether a process that is the only one, as far as MPI knows, is the only one: else each of them
// would search, and write.
void require_only_one(int rank) {
  const int expected = size_by_environment();
  if (rank == 0 && expected == 1) return;
  if (rank > 0) std::_Exit(kExitBadInput);
  fail_option(
      "MPI does not connect the {} processes that were started: expected OpenMPI's mpirun, "
      "or srun --mpi=pmix",
      expected);
}

// mpirun tries to start any number, and looks up from it for nobody: not for the end of the command
// that waits for it either. Where it has other machines, they may have room for all.
void refuse_too_many(int ranks) {
  constexpr int kOfACore = 64;
  for (const char* allocation : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE",
                                 "OMPI_MCA_orte_default_hostfile"}) {
    if (std::getenv(allocation) != nullptr) return;
  }
  const int most = kOfACore * hardware_threads();
  if (ranks <= most) return;
  fail_option(
      "--ranks {}: this machine, whose cores are {}, takes at most {}; expected fewer, or other "
      "machines (an allocation, or a mpirun of your own)",
      ranks, hardware_threads(), most);
}

void note_other_size(int asked_for, int size) {
  if (asked_for == 0 || asked_for == size) return;
  if (size > 1) {
    note(
        fmt::format("--ranks {}: mpirun or srun started {}, which work together", asked_for, size));
  } else if (asked_for > 1) {
    note(
        fmt::format("--ranks {}: mpirun or srun started this process alone, which then starts no "
                    "others; give mpirun or srun -n {}, or start it by salloc or sbatch",
                    asked_for, asked_for));
  }
}

// Runs one of the two in the end, but for the process that starts others.
void join_others(const RankArguments& arguments, Session& session,
                 const std::function<void()>& alone,
                 const std::function<void(std::unique_ptr<dist::Transport>,
                                          const dist::PostOptions&)>& together) {
  const int rank = rank_by_environment();
  if (rank < 0) {
    refuse_ranks_without_mpi();
    arguments.make(session);  // what is wrong with it is said once
    if (arguments.ranks > 1) {
      refuse_too_many(arguments.ranks);
      session.exit_code = launch_ranks(arguments.ranks, session);
      return;
    }
    return alone();
  }
  session.among_ranks = true;
  // With mpirun, or with what mpirun starts on another machine.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (rank > 0) {
    print_nothing();
  } else {
    attach_to_launcher(launcher_folder());
  }
  dist::PostOptions options = arguments.make(session);
  prepare_mpi();
  std::unique_ptr<dist::Transport> transport = join_in_time(rank, options);
  session.ranks_here = transport->ranks_here();
  session.rank_here = transport->rank_here();
  if (transport->size() == 1) {
    const struct End {
      dist::Transport& transport;
      ~End() { transport.leave(1); }
    } end{*transport};
    require_only_one(rank);
    note_other_size(arguments.ranks, 1);
    return alone();
  }
  if (transport->rank() == 0) note_other_size(arguments.ranks, transport->size());
  // Rank 0 is interrupted, and says what follows from it.
  if (rank > 0) {
    for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);
  }
  together(std::move(transport), options);
}

}  // namespace

void run_on_ranks(const RankArguments& arguments, Session& session,
                  const std::function<void()>& body) {
  const auto together = [&](std::unique_ptr<dist::Transport> transport,
                            const dist::PostOptions& options) {
    if (transport->rank() == 0) {
      run_as_first(std::move(transport), options, session, body);
    } else {
      run_as_other(std::move(transport), options, session, body);
    }
  };
  join_others(arguments, session, body, together);
}

void run_together(const RankArguments& arguments, Session& session,
                  const std::function<void(RankPeers* others)>& body) {
  const auto alone = [&] { body(nullptr); };
  const auto together = [&](std::unique_ptr<dist::Transport> transport,
                            const dist::PostOptions& options) {
    RankPeers peers(std::move(transport), options.lost_after);
    try {
      body(&peers);
    } catch (const std::exception& error) {
      peers.leave(error.what());
      peers.close();
      if (peers.rank() == 0) throw;
    }
    if (peers.rank() > 0) session.exit_code = kExitFine;
  };
  join_others(arguments, session, alone, together);
}

bool leaves_words_to_first(const CommandOutline& commands, const std::vector<std::string>& words) {
  if (rank_by_environment() <= 0 || words.empty() || words.front().starts_with("-")) return false;
  const auto& all = commands.commands;
  const auto chosen = std::find_if(all.begin(), all.end(), [&](const CommandOutline& command) {
    return command.name == words.front();
  });
  const auto is_ranks = [](const OptionOutline& option) {
    return std::find(option.names.begin(), option.names.end(), "--ranks") != option.names.end();
  };
  if (chosen != all.end() &&
      std::none_of(chosen->options.begin(), chosen->options.end(), is_ranks)) {
    return false;
  }
  print_nothing();
  return true;
}

void refuse_standard_input(const std::string& input) {
  if (input != "-") return;
  fail_option("-: every rank reads the input; expected a file's name, not standard input");
}

void require_file(const Session& session, const std::string& input) {
  if (session.crew != nullptr || session.member != nullptr) refuse_standard_input(input);
}

void note_end_of_rank(int exit_code) {
  if (rank_by_environment() <= 0) tell_launcher(launcher_folder(), exit_code);
}

}  // namespace emplace::cli
