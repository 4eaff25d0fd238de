// Whole files, in and out; "-" is read from standard input. Reading ungzips by content; writing
// goes to a temporary name first, so that a reader never sees half a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace emplace {

std::string read_file(const std::string& path);
// What a file of these bytes holds.
std::string unpacked(std::string bytes, const std::string& path);
// Throws an Error where write_file would for want of a folder; nothing where the path is empty.
void require_folder(const std::string& path);
// Throws an Error where write_file would because the path is a folder's, or no file can be made
// beside it; leaves nothing behind, and takes away what a process that was killed did.
void require_writable(const std::string& path);
void write_file(const std::string& path, std::string_view content);  // gzips where path ends in .gz
// What processes that were killed left of writing this file or folder, under temporary names.
std::vector<std::string> left_overs_of(const std::string& target);
// Whether both are one file, or would be if they were written.
bool same_file(const std::string& a, const std::string& b);

}  // namespace emplace
