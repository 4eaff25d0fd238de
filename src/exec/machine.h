// The threads that steps are executed with: one for each device, on its own cores, and one for each
// channel of the cluster.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"

#include "exec/channel.h"
#include "exec/device_thread.h"
#include "exec/memory_accounts.h"
#include "exec/runtime.h"
#include "exec/spin.h"

namespace emplace::exec {

// Seen from this process: its own, of another one on the same machine, or elsewhere.
enum class DevicePlace { kHere, kNear, kFar };

class Machine {
 public:
  // Without `places`, by device, all devices are here; only those that are have a thread. Throws an
  // Error that names the device that has no `runs_on`, or none that is here.
  Machine(std::shared_ptr<const Cluster> cluster, const RuntimeOptions& options,
          std::vector<DevicePlace> places = {});
  ~Machine();

  const Cluster& cluster() const { return *cluster_; }
  std::size_t num_devices() const { return devices_.size(); }
  DeviceThread& device(std::size_t i) { return *devices_[i]; }
  // One that a device here is at an end of.
  Channel& channel(std::size_t i) { return *channels_[i]; }
  MemoryAccounts& memory() { return memory_; }
  Bytes memory_limit(std::size_t device) const { return limits_[device]; }
  Patience patience() const { return patience_; }
  // By device: the number of its GPU; -1: it is cores.
  const std::vector<int>& cuda_of_device() const { return cuda_of_device_; }
  bool cancelled() const { return cancelled_ != nullptr && cancelled_->load(); }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // Which of its ends is here.
  struct Ends {
    bool from = false;
    bool to = false;
  };

  bool here(DeviceId device) const { return places_[device] == DevicePlace::kHere; }
  Ends ends_here(ChannelId channel) const;
  void assign_cores();
  void assign_device(DeviceId id, const std::vector<int>& usable);
  std::vector<int> cores_left(const std::vector<int>& usable) const;
  void add_channels();

  std::shared_ptr<const Cluster> cluster_;
  const std::atomic<bool>* cancelled_;
  Neighbours neighbours_;
  std::vector<DevicePlace> places_;  // by device
  std::vector<std::vector<int>> cores_of_device_;
  std::vector<int> cuda_of_device_;
  std::vector<int> cores_of_channels_;  // those that are left; empty: any
  Patience patience_ = Patience::kSpin;
  int threads_before_;  // of libtorch's loops: what new threads of the process begin with
  std::vector<std::string> warnings_;
  std::vector<Bytes> limits_;  // by device
  MemoryAccounts memory_;
  std::vector<std::unique_ptr<DeviceThread>> devices_;  // of those here
  std::vector<std::unique_ptr<Channel>> channels_;      // by channel of the cluster
};

}  // namespace emplace::exec
