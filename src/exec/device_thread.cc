#include "exec/device_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <pthread.h>
#include <sched.h>

#include "exec/memory_accounts.h"
#include "exec/runtime.h"
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
    : device_(device), cores_(std::move(cores)) {
  start();
}

void DeviceThread::start() {
  desk_ = std::make_shared<Desk>();
  thread_ =
      std::thread([desk = desk_, device = device_, cores = cores_] { loop(*desk, device, cores); });
}

DeviceThread::~DeviceThread() {
  {
    const std::lock_guard lock(desk_->mutex);
    desk_->ending = true;
  }
  desk_->changed.notify_all();
  thread_.join();
}

void DeviceThread::loop(Desk& desk, std::size_t device, const std::vector<int>& cores) {
  if (!cores.empty()) pin_to(cores);
  // A thread's first operation takes the number that another thread has set last: now, not later.
  at::get_num_threads();
  at::set_num_threads(std::max(1, static_cast<int>(cores.size())));
  at::globalContext().setFlushDenormal(true);
  const torch::NoGradGuard no_gradients;
  const MemoryAccounts::For account(device);
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(desk.mutex);
      desk.changed.wait(lock, [&] { return desk.busy || desk.ending; });
      if (!desk.busy) return;
      job = std::move(desk.job);
    }
    try {
      job();
    } catch (const Abandoned&) {
      --threads_left_alone();
      return;
    }
    job = nullptr;
    {
      const std::lock_guard lock(desk.mutex);
      desk.busy = false;
    }
    desk.changed.notify_all();
  }
}

void DeviceThread::post(std::function<void()> job) {
  {
    const std::lock_guard lock(desk_->mutex);
    desk_->job = std::move(job);
    desk_->busy = true;
  }
  desk_->changed.notify_all();
}

void DeviceThread::wait() {
  std::unique_lock lock(desk_->mutex);
  desk_->changed.wait(lock, [&] { return !desk_->busy; });
}

bool DeviceThread::wait_for(Nanoseconds time) {
  std::unique_lock lock(desk_->mutex);
  return desk_->changed.wait_for(lock, std::chrono::nanoseconds(time),
                                 [&] { return !desk_->busy; });
}

void DeviceThread::replace() {
  const sched_param priority{};
  pthread_setschedparam(thread_.native_handle(), SCHED_IDLE, &priority);
  ++threads_left_alone();
  thread_.detach();
  start();
}

}  // namespace emplace::exec
