// Progress of long work on standard error, from a thread of its own: on a terminal one line that is
// overwritten several times a second; elsewhere plain lines, one every few seconds. Nothing for
// what is done within half a second, nor when asked to be quiet.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace emplace::cli {

class Progress {
 public:
  // `line` is called from the other thread until this is destroyed; what it returns has no line
  // end and is cut to the width of the terminal.
  explicit Progress(std::function<std::string()> line);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void tick();

  std::function<std::string()> line_;
  bool terminal_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace emplace::cli
