#include "exec/device_thread.h"

#include <algorithm>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <pthread.h>
#include <sched.h>

#include "exec/memory_accounts.h"
#include "exec/torch.h"

namespace emplace::exec {

bool pin_to(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(core), &set);
  }
  return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

DeviceThread::DeviceThread(std::size_t device, std::vector<int> cores)
    : device_(device), cores_(std::move(cores)), thread_([this] { loop(); }) {}

DeviceThread::~DeviceThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DeviceThread::loop() {
  if (!cores_.empty()) pin_to(cores_);
  // A thread's first operation takes the number that another thread has set last: now, not later.
  at::get_num_threads();
  at::set_num_threads(std::max(1, static_cast<int>(cores_.size())));
  at::globalContext().setFlushDenormal(true);
  const torch::NoGradGuard no_gradients;
  const MemoryAccounts::For account(device_);
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return busy_ || ending_; });
      if (!busy_) return;
      job = std::move(job_);
    }
    job();
    {
      const std::lock_guard lock(mutex_);
      busy_ = false;
    }
    changed_.notify_all();
  }
}

void DeviceThread::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
    busy_ = true;
  }
  changed_.notify_all();
}

void DeviceThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_; });
}

}  // namespace emplace::exec
