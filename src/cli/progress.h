// Progress of long work on standard error: one line that is overwritten on a terminal; elsewhere
// plain lines, one every few seconds.
#pragma once

#include <chrono>
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
  std::chrono::steady_clock::time_point last_shown_ = std::chrono::steady_clock::now();
};

}  // namespace emplace::cli
