// Calls something now and then while long work goes on, from a thread of its own: to tell a
// listener how far it has come, say.
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
  explicit Ticker(std::function<void()> call);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void tick();

  std::function<void()> call_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace emplace
