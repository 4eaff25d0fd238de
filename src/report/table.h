// Text tables for people: columns as wide as they need, numbers to the right; wider than texts are,
// they lose what they can spare.
#pragma once

#include <string>
#include <vector>

namespace emplace {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool spare = false;  // as pictures of numbers are
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string to_string() const;

 private:
  std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// `share` (0 to 1) of `width` as a bar, of eighth blocks where these can be shown.
std::string bar(double share, int width);

}  // namespace emplace
