// Tells a listener now and then how far long work has come, from a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include <emplace/search.h>

namespace emplace {

class Ticker {
 public:
  // `line` is called from the other thread until this is destroyed; nothing is done without a
  // listener.
  Ticker(ProgressListener listener, std::function<std::string()> line);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void tick();

  ProgressListener listener_;
  std::function<std::string()> line_;
  Budget clock_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace emplace
