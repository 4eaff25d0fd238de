// The page that people open: one HTML file with results in it, which needs nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace emplace {

// Of one result or several, in JSON, as report/page_data.h makes them. What they hold is packed, so
// that no name in it can be taken for markup.
std::string page_html(const std::vector<std::string>& results);

// The results, in JSON, in a page, in the data that was downloaded from one, or in what --json
// printed, of which there is less to see. Throws an Error that names the file where it is none of
// these.
std::vector<std::string> results_in(const std::string& path);
// The same of a file's text.
std::vector<std::string> results_in_text(std::string text, const std::string& path);

}  // namespace emplace
