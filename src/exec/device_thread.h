// The thread that executes one device's ops, and those that carry its tensors.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/units.h"

namespace emplace::exec {

// From now on this thread, and whatever threads it starts, run on these cores alone. Where the
// operating system does not allow that, nothing changes and it says no.
bool pin_to(const std::vector<int>& cores);

// Thrown by a job whose thread has been replaced: nobody waits for it any more.
struct Abandoned {};

// Runs jobs one after the other, on its cores, with a team of as many threads for libtorch's loops.
class DeviceThread {
 public:
  DeviceThread(std::size_t device, std::vector<int> cores);
  ~DeviceThread();
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  // Jobs throw nothing but Abandoned.
  void post(std::function<void()> job);
  // Until the job that was posted has ended.
  void wait();
  // At most so long; says whether it has ended.
  bool wait_for(Nanoseconds time);
  // Leaves the job to a thread of its own, which ends with it and gives way to all others; from now
  // on there is a new one.
  void replace();

 private:
  // What the thread and its owner share; the thread may outlive the owner.
  struct Desk {
    std::mutex mutex;
    std::condition_variable changed;
    std::function<void()> job;
    bool busy = false;
    bool ending = false;
  };
  static void loop(Desk& desk, std::size_t device, const std::vector<int>& cores);
  void start();

  std::size_t device_;
  std::vector<int> cores_;
  std::shared_ptr<Desk> desk_;
  std::thread thread_;
};

}  // namespace emplace::exec
