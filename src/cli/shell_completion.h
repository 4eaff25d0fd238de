// What shells and man(1) need to know of the command line, written from its outline.
#pragma once

#include <string>

#include "cli/command_line.h"

namespace emplace::cli {

std::string bash_completion(const CommandOutline& outline);
std::string zsh_completion(const CommandOutline& outline);
std::string fish_completion(const CommandOutline& outline);

// In roff.
std::string manual_page(const CommandOutline& outline, const std::string& version);

}  // namespace emplace::cli
