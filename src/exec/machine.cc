#include "exec/machine.h"

#include <algorithm>
#include <map>
#include <set>

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

Machine::Machine(std::shared_ptr<const Cluster> cluster, const RuntimeOptions& options,
                 std::vector<DevicePlace> places)
    : cluster_(std::move(cluster)),
      cancelled_(options.cancelled),
      neighbours_(options.neighbours),
      places_(std::move(places)),
      threads_before_(at::get_num_threads()),
      limits_(memory_limits(*cluster_, options.limit_memory)),
      memory_(limits_, has_gpus(*cluster_)) {
  if (places_.empty()) places_.assign(cluster_->num_devices(), DevicePlace::kHere);
  require_real_links(*cluster_);
  assign_cores();
  devices_.resize(cluster_->num_devices());
  for (DeviceId id = 0; id < cluster_->num_devices(); ++id) {
    if (here(id)) devices_[id] = std::make_unique<DeviceThread>(id, cores_of_device_[id]);
  }
  add_channels();
}

Machine::~Machine() {
  channels_.clear();
  devices_.clear();
  at::set_num_threads(threads_before_);
}

Machine::Ends Machine::ends_here(ChannelId channel) const {
  Ends ends;
  for (DeviceId from = 0; from < cluster_->num_devices(); ++from) {
    for (DeviceId to = 0; to < cluster_->num_devices(); ++to) {
      const Link* link = cluster_->link(from, to);
      if (link == nullptr || link->channel != channel) continue;
      ends.from = ends.from || here(from);
      ends.to = ends.to || here(to);
    }
  }
  return ends;
}

void Machine::add_channels() {
  const bool shared = std::any_of(places_.begin(), places_.end(),
                                  [](DevicePlace place) { return place == DevicePlace::kNear; });
  for (ChannelId id = 0; id < cluster_->num_channels(); ++id) {
    const Ends ends = ends_here(id);
    std::vector<int> cores = cores_of_channels_;
    // Each on one of its own, as long as there are enough; both ends may have a process.
    if (patience_ == Patience::kSpin) {
      const std::size_t number = id;
      cores = {cores_of_channels_[shared ? 2 * number + (ends.from ? 0 : 1) : number]};
    }
    auto channel =
        ends.from || ends.to ? std::make_unique<Channel>(std::move(cores), patience_) : nullptr;
    channels_.push_back(std::move(channel));
  }
}

// Those of other processes on this machine take cores as well.
void Machine::assign_device(DeviceId id, const std::vector<int>& usable) {
  const Device& device = cluster_->device(id);
  cores_of_device_.emplace_back();
  cuda_of_device_.push_back(-1);
  if (places_[id] == DevicePlace::kFar) return;
  if (places_[id] == DevicePlace::kNear) {
    if (!device.runs_on.empty()) cores_of_device_.back() = parse_runs_on(device.runs_on).cores;
    return;
  }
  const RunsOn runs_on = runs_on_of(device, usable);
  cores_of_device_.back() = runs_on.cores;
  const int cuda = runs_on.cuda.value_or(-1);
  const auto same = std::find(cuda_of_device_.begin(), cuda_of_device_.end(), cuda);
  if (cuda >= 0 && same != cuda_of_device_.end()) {
    fail_input("device '{}': runs_on: 'cuda:{}' is another device's; expected a GPU of its own",
               device.name, cuda);
  }
  cuda_of_device_.back() = cuda;
}

// Those that no device has, here or next to it; of these, this process's share.
std::vector<int> Machine::cores_left(const std::vector<int>& usable) const {
  std::set<int> taken(neighbours_.cores.begin(), neighbours_.cores.end());
  for (const std::vector<int>& cores : cores_of_device_) taken.insert(cores.begin(), cores.end());
  std::vector<int> left;
  int number = 0;
  for (const int core : usable) {
    if (taken.contains(core)) continue;
    if (number++ % neighbours_.count == neighbours_.index) left.push_back(core);
  }
  return left;
}

void Machine::assign_cores() {
  const std::vector<int> usable = usable_cores();
  std::map<int, std::string> owner;
  bool shared = false;
  std::size_t near = 0;
  for (DeviceId id = 0; id < cluster_->num_devices(); ++id) {
    assign_device(id, usable);
    near += places_[id] == DevicePlace::kNear ? 1 : 0;
    for (const int core : cores_of_device_.back()) {
      const auto [at, free] = owner.try_emplace(core, cluster_->device(id).name);
      if (free || shared) continue;
      shared = true;
      warnings_.push_back(fmt::format("devices '{}' and '{}' share core {}: times will mislead",
                                      at->second, cluster_->device(id).name, core));
    }
  }
  cores_of_channels_ = cores_left(usable);
  // A core for each link, for each GPU's thread that has none, and for whoever drives the step;
  // with other processes on the machine, for both ends of each link, and for the two threads that
  // each of them has beside.
  std::size_t next = cluster_->num_channels() * (near > 0 ? 2 : 1);
  for (DeviceId id = 0; id < cluster_->num_devices(); ++id) {
    if (cuda_of_device_[id] < 0 || !cores_of_device_[id].empty()) continue;
    if (next < cores_of_channels_.size()) cores_of_device_[id] = {cores_of_channels_[next]};
    ++next;
  }
  const std::size_t wanted = next + 1 + 2 * near;
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
