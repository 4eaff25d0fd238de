// Whole folders out, as files are (io/file.h): under a temporary name first.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace emplace {

// `write` fills an empty folder that it is given; only then does the folder get its name. One that
// is there is replaced if it is empty, or if a file of the name `marker` in it says that it is of
// this program and names all others; else an Error says so before anything is written. Whoever
// looks, or is left with what a killed run did, sees the old folder or the new one.
void write_folder(const std::string& path, std::string_view marker,
                  const std::function<void(const std::string& folder)>& write);

}  // namespace emplace
