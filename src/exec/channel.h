// What carries tensors from device to device: one at a time, in the order in which they came.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "base/units.h"

#include "cluster/cluster.h"

#include "exec/spin.h"
#include "exec/torch.h"

namespace emplace::exec {

// A copy for the device, made on this thread; where the link is throttled, no sooner than it would
// bring what was sent at `start`, or than `stopped` says that nobody wants it any more.
torch::Tensor carry(const torch::Tensor& tensor, std::size_t to, const Link& link,
                    Nanoseconds start, const std::function<bool()>& stopped);

class Channel {
 public:
  Channel(std::vector<int> cores, Patience patience);
  ~Channel();  // when all jobs have been done
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Jobs do not throw.
  void post(std::function<void()> job);

 private:
  void loop(const std::vector<int>& cores);
  std::optional<std::function<void()>> next();

  Patience patience_;
  SpinLock lock_;
  std::deque<std::function<void()>> jobs_;
  std::atomic<int> waiting_{0};
  std::atomic<bool> ending_{false};
  Signal changed_;
  std::thread thread_;  // the last, as it uses all others
};

}  // namespace emplace::exec
