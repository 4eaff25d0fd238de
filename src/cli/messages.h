// What a command says beside its answer: on standard error, and nothing of it when asked to be
// quiet.
#pragma once

#include <string>
#include <string_view>

#include "cli/command_line.h"

namespace emplace::cli {

// On standard error; what cannot be written there is of no consequence: an answer must not be lost
// because a log is full or nobody reads it. Control characters of texts from files are made
// visible.
void say(std::string_view text);

// -q,--quiet.
void add_quiet(Command command);
bool quiet();

void note(const std::string& text);
void warn(const std::string& text);
// The search was stopped by a signal.
void note_interrupted();

}  // namespace emplace::cli
