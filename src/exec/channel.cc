#include "exec/channel.h"

#include <cstring>
#include <mutex>
#include <utility>

#include <ATen/Parallel.h>

#include "exec/clock.h"
#include "exec/device_thread.h"
#include "exec/memory_accounts.h"

namespace emplace::exec {

torch::Tensor carry(const torch::Tensor& tensor, std::size_t to, const Link& link,
                    Nanoseconds start, const std::function<bool()>& stopped) {
  const MemoryAccounts::For account(to);
  torch::Tensor copy = torch::empty(tensor.sizes(), tensor.options());
  const std::size_t bytes = copy.nbytes();
  if (!tensor.is_contiguous()) {
    copy.copy_(tensor);
  } else if (bytes > 0) {
    std::memcpy(copy.data_ptr(), tensor.data_ptr(), bytes);
  }
  if (link.throttled) {
    const Nanoseconds end = start + transfer_time(link, static_cast<Bytes>(bytes));
    wait_until(end, stopped);
  }
  return copy;
}

Channel::Channel(std::vector<int> cores, Patience patience)
    : patience_(patience), thread_([this, cores = std::move(cores)] { loop(cores); }) {}

Channel::~Channel() {
  ending_ = true;
  changed_.notify();
  thread_.join();
}

void Channel::post(std::function<void()> job) {
  {
    const std::lock_guard lock(lock_);
    jobs_.push_back(std::move(job));
  }
  waiting_.fetch_add(1, std::memory_order_release);
  changed_.notify();
}

std::optional<std::function<void()>> Channel::next() {
  changed_.wait(patience_, [&] { return waiting_.load(std::memory_order_acquire) > 0 || ending_; });
  const std::lock_guard lock(lock_);
  if (jobs_.empty()) return std::nullopt;
  std::function<void()> job = std::move(jobs_.front());
  jobs_.pop_front();
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  return job;
}

void Channel::loop(const std::vector<int>& cores) {
  if (!cores.empty()) pin_to(cores);
  at::get_num_threads();
  at::set_num_threads(1);
  const torch::NoGradGuard no_gradients;
  while (auto job = next()) (*job)();
}

}  // namespace emplace::exec
