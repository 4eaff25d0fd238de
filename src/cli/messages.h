// What a command says beside its answer: on standard error, and nothing of it when asked to be
// quiet.
#pragma once

#include <string>

#include "cli/command_line.h"

namespace emplace::cli {

// -q,--quiet.
void add_quiet(Command command);
bool quiet();

void note(const std::string& text);
void warn(const std::string& text);
// The search was stopped by a signal.
void note_interrupted();

}  // namespace emplace::cli
