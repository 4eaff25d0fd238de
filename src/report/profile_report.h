// A profile for people and for programs; and its phases as lines of a file, to go on from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "run/profile.h"

namespace emplace {

std::string to_text(const Profile& profile);
std::string to_json(const Profile& profile);

// What a file of phases begins with: whatever must be the same to go on.
std::string phases_header(const Graph& graph, const Cluster& cluster,
                          const ProfileSettings& settings);
// One line, with its end.
std::string phase_line(const ProfilePhase& phase);
// The phases of a file's content; a last line that is not whole is left out. Throws an Error when
// the header is another one.
std::vector<ProfilePhase> parse_phases(std::string_view content, const std::string& header);

}  // namespace emplace
