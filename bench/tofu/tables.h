// Rows of the evaluation, kept in a file so that it can go on where it ended, and their tables.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "tofu/columns.h"

namespace emplace::tofu {

struct RowKey {
  std::string part;
  std::string machine;
  std::string model;
  std::string column;

  auto operator<=>(const RowKey&) const = default;
};

class Rows {
 public:
  // Reads what the file has. Throws an Error where a line is no row.
  explicit Rows(std::string path);

  // Computes the row and appends it to the file, unless it is there.
  void add(const RowKey& key, const std::function<Trial()>& compute);
  const Trial* find(const RowKey& key) const;

 private:
  std::string path_;
  std::map<RowKey, Trial> rows_;
};

// Markdown, to standard output.
void print_tables(const Rows& rows);

}  // namespace emplace::tofu
