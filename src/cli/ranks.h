// Where a command runs: alone, as the first of several ranks, or as one that helps the first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "run/rank_peers.h"

namespace emplace::cli {

// --ranks and --lost-after.
struct RankArguments {
  int ranks = 0;  // 0: this process alone, or those that were started together
  std::string lost_after;

  void add_to(Command command, const std::string& after_a_loss = "go on without it");
  dist::PostOptions make(const Session& session) const;
};

// Runs the command's body where it belongs: starts the ranks that were asked for and waits for
// them, or joins those that this process was started with (by mpirun or srun), or just runs it. The
// session then has the crew of rank 0, or the member of another rank: a body there reads the input,
// serves the member and returns. What it prints goes nowhere.
void run_on_ranks(const RankArguments& arguments, Session& session,
                  const std::function<void()>& body);

// The same for a command that all ranks execute together, each with a share of the devices. Alone,
// the body gets nullptr.
void run_together(const RankArguments& arguments, Session& session,
                  const std::function<void(RankPeers* others)>& body);

// Of those that were started together, the first alone says what is wrong with the words. Whether
// this process is another one, and the command one that works as several, or none: from now on it
// prints nothing, and it is to end with kExitFine, lest mpirun ends the first before it has said
// it.
bool leaves_words_to_first(const CommandOutline& commands, const std::vector<std::string>& words);

// Throws an Error where one of several ranks is to read what only one process can.
void require_file(const Session& session, const std::string& input);

// The same, where there are several.
void refuse_standard_input(const std::string& input);

// Of a process that joined others, at its end.
void note_end_of_rank(int exit_code);

}  // namespace emplace::cli
