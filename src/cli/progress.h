// Progress of long work on standard error, from a thread of its own: on a terminal a line, or a
// few, that are overwritten several times a second; elsewhere plain lines, one every few seconds.
// Nothing for what is done within half a second, nor when asked to be quiet.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace emplace::cli {

class Progress {
 public:
  using Lines = std::vector<std::string>;

  // `line` is called from the other thread until this is destroyed; what it returns has no line
  // end and is cut to the width of the terminal.
  explicit Progress(std::function<std::string()> line);
  // The same of several lines, of which only the first is shown where there is no room, or no
  // cursor that can be moved. `columns`: those of the terminal.
  explicit Progress(std::function<Lines(std::size_t columns)> lines);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void tick();
  void draw();
  std::string erased();  // what erases the lines that are drawn

  std::function<Lines(std::size_t columns)> lines_;
  bool terminal_;
  std::size_t drawn_ = 0;  // lines on the terminal now
  std::string said_;       // last, where there is no terminal
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace emplace::cli
