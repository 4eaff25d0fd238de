#include "exec/machine.h"

#include <algorithm>
#include <map>

#include <ATen/Parallel.h>
#include <sched.h>

#include "base/error.h"

#include "cluster/runs_on.h"

#include "exec/gpu_parts.h"

namespace emplace::exec {
namespace {

// That this process may use.
std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

// A thread carries a channel's tensors one after the other, as the wires do.
void require_real_links(const Cluster& cluster) {
  for (ChannelId id = 0; id < cluster.num_channels(); ++id) {
    if (!cluster.is_unlimited(id)) continue;
    fail(ErrorKind::kUnsupported,
         "cluster '{}': channel '{}': can only be simulated; to execute steps, expected channel: "
         "pair, out, in or a name in place of unlimited",
         cluster.name(), cluster.channel_name(id));
  }
}

std::vector<Bytes> memory_limits(const Cluster& cluster, bool limited) {
  if (cluster.num_devices() > MemoryAccounts::kMostDevices) {
    fail(ErrorKind::kUnsupported,
         "cluster '{}': {} devices are more than the {} that one machine can run", cluster.name(),
         cluster.num_devices(), MemoryAccounts::kMostDevices);
  }
  std::vector<Bytes> limits;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    limits.push_back(limited ? cluster.device(id).memory : kUnlimited);
  }
  return limits;
}

bool has_gpus(const Cluster& cluster) {
  const auto& devices = cluster.spec().devices;
  return std::any_of(devices.begin(), devices.end(),
                     [](const Device& device) { return is_gpu(device); });
}

RunsOn runs_on_of(const Device& device, const std::vector<int>& usable) {
  const auto where = [&] { return fmt::format("device '{}': runs_on", device.name); };
  if (device.runs_on.empty()) {
    fail_input(
        "{}: is missing, so nothing can be executed on it; expected cores such as 'cores 0-3' "
        "('emplace cluster local' writes such a file)",
        where());
  }
  const RunsOn runs_on = parse_runs_on(device.runs_on);
  if (runs_on.cuda) {
    const std::vector<LocalGpu> gpus = cuda_gpus();
    const bool there = std::any_of(gpus.begin(), gpus.end(),
                                   [&](const LocalGpu& gpu) { return gpu.index == *runs_on.cuda; });
    if (!there) {
      fail(ErrorKind::kUnsupported, "{}: there is no GPU 'cuda:{}' that libtorch can use here",
           where(), *runs_on.cuda);
    }
  }
  for (const int core : runs_on.cores) {
    if (std::find(usable.begin(), usable.end(), core) == usable.end()) {
      fail_input("{}: there is no core {} that this process may use; expected some of {}", where(),
                 core, core_list_text(usable));
    }
  }
  return runs_on;
}

}  // namespace

Machine::Machine(std::shared_ptr<const Cluster> cluster, const RuntimeOptions& options)
    : cluster_(std::move(cluster)),
      cancelled_(options.cancelled),
      threads_before_(at::get_num_threads()),
      limits_(memory_limits(*cluster_, options.limit_memory)),
      memory_(limits_, has_gpus(*cluster_)) {
  require_real_links(*cluster_);
  assign_cores();
  for (std::size_t i = 0; i < cores_of_device_.size(); ++i) {
    devices_.push_back(std::make_unique<DeviceThread>(i, cores_of_device_[i]));
  }
  for (ChannelId id = 0; id < cluster_->num_channels(); ++id) {
    std::vector<int> cores = cores_of_channels_;
    // Each on one of its own, as long as there are enough.
    if (patience_ == Patience::kSpin) cores = {cores_of_channels_[id]};
    channels_.push_back(std::make_unique<Channel>(std::move(cores), patience_));
  }
}

Machine::~Machine() {
  channels_.clear();
  devices_.clear();
  at::set_num_threads(threads_before_);
}

void Machine::assign_cores() {
  const std::vector<int> usable = usable_cores();
  std::map<int, std::string> owner;
  bool shared = false;
  for (DeviceId id = 0; id < cluster_->num_devices(); ++id) {
    const Device& device = cluster_->device(id);
    const RunsOn runs_on = runs_on_of(device, usable);
    cores_of_device_.push_back(runs_on.cores);
    const int cuda = runs_on.cuda.value_or(-1);
    const auto same = std::find(cuda_of_device_.begin(), cuda_of_device_.end(), cuda);
    if (cuda >= 0 && same != cuda_of_device_.end()) {
      fail_input("device '{}': runs_on: 'cuda:{}' is another device's; expected a GPU of its own",
                 device.name, cuda);
    }
    cuda_of_device_.push_back(cuda);
    for (const int core : cores_of_device_.back()) {
      const auto [at, free] = owner.try_emplace(core, device.name);
      if (free || shared) continue;
      shared = true;
      warnings_.push_back(fmt::format("devices '{}' and '{}' share core {}: times will mislead",
                                      at->second, device.name, core));
    }
  }
  for (const int core : usable) {
    if (!owner.contains(core)) cores_of_channels_.push_back(core);
  }
  // A core for each link, for each GPU's thread that has none, and for whoever drives the step.
  std::size_t next = cluster_->num_channels();
  for (DeviceId id = 0; id < cluster_->num_devices(); ++id) {
    if (cuda_of_device_[id] < 0 || !cores_of_device_[id].empty()) continue;
    if (next < cores_of_channels_.size()) cores_of_device_[id] = {cores_of_channels_[next]};
    ++next;
  }
  const std::size_t wanted = next + 1;
  if (!shared && (cluster_->num_channels() == 0 || cores_of_channels_.size() >= wanted)) return;
  patience_ = Patience::kSleep;
  if (cores_of_channels_.size() < wanted && cluster_->num_channels() > 0) {
    warnings_.push_back(
        fmt::format("cores left for {} links and this program: {}, expected {}; transfers will "
                    "take time from ops",
                    cluster_->num_channels(), cores_of_channels_.size(), wanted));
  }
}

}  // namespace emplace::exec
