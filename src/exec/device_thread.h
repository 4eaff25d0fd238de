// The thread that executes one device's ops, and those that carry its tensors.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace emplace::exec {

// From now on this thread, and whatever threads it starts, run on these cores alone. Where the
// operating system does not allow that, nothing changes and it says no.
bool pin_to(const std::vector<int>& cores);

// Runs jobs one after the other, on its cores, with a team of as many threads for libtorch's loops.
class DeviceThread {
 public:
  DeviceThread(std::size_t device, std::vector<int> cores);
  ~DeviceThread();
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  // Jobs do not throw.
  void post(std::function<void()> job);
  // Until the job that was posted has ended.
  void wait();

 private:
  void loop();

  std::size_t device_;
  std::vector<int> cores_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;  // the last, as it uses all others
};

}  // namespace emplace::exec
