// Progress of long work on standard error: one line that is overwritten on a terminal, plain lines
// elsewhere.
#pragma once

#include <string>

namespace emplace::cli {

class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& line);

 private:
  bool quiet_;
  bool terminal_;
};

}  // namespace emplace::cli
