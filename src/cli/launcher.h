// Starts a command as several ranks by mpirun, and is for whoever called it as if it were the first
// of them: what rank 0 prints comes here, signals go there, and its exit code is this one's.
#pragma once

#include <string>

#include "cli/command.h"

namespace emplace::cli {

// The exit code. Throws an Error when mpirun cannot be started.
int launch_ranks(int ranks, Session& session);

// In a rank that was started so: the folder that launcher and rank 0 share; empty: by another way.
std::string launcher_folder();
// Rank 0 prints where the launcher would, and can be interrupted from there.
void attach_to_launcher(const std::string& folder);
void tell_launcher(const std::string& folder, int exit_code);

}  // namespace emplace::cli
