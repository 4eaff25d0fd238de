#include "cluster/local_machine.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <hwloc.h>
#include <unistd.h>

#include "base/error.h"

#include "cluster/control_group.h"
#include "cluster/cpu_speed.h"

namespace emplace {
namespace {

using Hwloc = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

Hwloc empty_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    fail(ErrorKind::kSystem, "the cores of this machine cannot be listed: hwloc does not start");
  }
  return {topology, &hwloc_topology_destroy};
}

void load(const Hwloc& topology) {
  if (hwloc_topology_load(topology.get()) != 0) {
    fail(ErrorKind::kSystem, "the cores of this machine cannot be listed: hwloc finds none");
  }
}

// What the process may run on: all that the topology has, less what its affinity rules out.
Bitmap usable_threads(const Hwloc& topology) {
  Bitmap usable(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology.get())),
                &hwloc_bitmap_free);
  const Bitmap bound(hwloc_bitmap_alloc(), &hwloc_bitmap_free);
  if (hwloc_topology_is_thissystem(topology.get()) == 1 &&
      hwloc_get_cpubind(topology.get(), bound.get(), HWLOC_CPUBIND_PROCESS) == 0 &&
      hwloc_bitmap_intersects(usable.get(), bound.get()) == 1) {
    hwloc_bitmap_and(usable.get(), usable.get(), bound.get());
  }
  return usable;
}

// The first node with the hardware thread; a machine without nodes is one.
int node_of(const Hwloc& topology, const hwloc_obj* thread) {
  const int count = std::max(hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE), 1);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj* node =
        hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    if (node != nullptr && hwloc_bitmap_isset(node->cpuset, thread->os_index) == 1) return i;
  }
  return 0;
}

// By the first thread under the cache. Where there is none, a node is as good.
int last_cache_of(const Hwloc& topology, hwloc_obj* thread, int node) {
  const hwloc_obj* cache =
      hwloc_get_ancestor_obj_by_type(topology.get(), HWLOC_OBJ_L3CACHE, thread);
  return cache == nullptr ? node : hwloc_bitmap_first(cache->cpuset);
}

std::vector<LocalCore> find_cores(const Hwloc& topology) {
  const Bitmap usable = usable_threads(topology);
  std::vector<LocalCore> cores;
  const hwloc_obj* last_core = nullptr;
  for (hwloc_obj* thread = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PU, nullptr);
       thread != nullptr;
       thread = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PU, thread)) {
    if (hwloc_bitmap_isset(usable.get(), thread->os_index) == 0) continue;
    const hwloc_obj* core = hwloc_get_ancestor_obj_by_type(topology.get(), HWLOC_OBJ_CORE, thread);
    if (core == nullptr || core != last_core) {
      const int node = node_of(topology, thread);
      cores.push_back({{}, node, last_cache_of(topology, thread, node)});
    }
    last_core = core;
    cores.back().threads.push_back(static_cast<int>(thread->os_index));
  }
  return cores;
}

std::vector<LocalCache> find_caches(const Hwloc& topology) {
  std::vector<LocalCache> caches;
  int level = 0;
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE}) {
    ++level;
    const hwloc_obj* cache = hwloc_get_obj_by_type(topology.get(), type, 0);
    if (cache == nullptr) continue;
    caches.push_back({level, static_cast<Bytes>(cache->attr->cache.size),
                      hwloc_get_nbobjs_by_type(topology.get(), type)});
  }
  return caches;
}

LocalMachine describe(const Hwloc& topology) {
  LocalMachine machine;
  machine.cores = find_cores(topology);
  machine.caches = find_caches(topology);
  for (const hwloc_obj* node = nullptr;;) {
    node = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE,
                                      const_cast<hwloc_obj*>(node));
    if (node == nullptr) break;
    const auto memory = static_cast<Bytes>(node->attr->numanode.local_memory);
    machine.nodes.push_back({static_cast<int>(node->os_index), memory});
    machine.memory += memory;
  }
  if (machine.cores.empty()) {
    fail(ErrorKind::kSystem, "this machine has no cores that this process may use");
  }
  return machine;
}

Bytes physical_memory() {
  const auto pages = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES));
  const auto size = static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  return pages > 0 && size > 0 ? pages * size : 0;
}

// A quota of time is no set of cores, but threads that are pinned to more cores than it pays for
// would be stopped again and again.
void obey(const ControlGroup& group, LocalMachine& machine) {
  if (machine.memory == 0) machine.memory = physical_memory();
  if (group.memory) machine.memory = std::min(machine.memory, *group.memory);
  if (!group.cores) return;
  const auto most = static_cast<std::size_t>(std::max(1.0, std::floor(*group.cores)));
  if (machine.cores.size() > most) machine.cores.resize(most);
}

}  // namespace

int LocalMachine::num_threads() const {
  std::size_t count = 0;
  for (const LocalCore& core : cores) count += core.threads.size();
  return static_cast<int>(count);
}

LocalMachine this_machine() {
  const Hwloc topology = empty_topology();
  load(topology);
  LocalMachine machine = describe(topology);
  if (hwloc_topology_is_thissystem(topology.get()) == 1) obey(read_control_group(), machine);
  const CpuSpeed speed = read_cpu_speed();
  machine.processor = speed.name;
  machine.gigahertz = speed.gigahertz;
  machine.float32_per_cycle = speed.float32_per_cycle;
  return machine;
}

LocalMachine synthetic_machine(const std::string& topology_text) {
  const Hwloc topology = empty_topology();
  if (hwloc_topology_set_synthetic(topology.get(), topology_text.c_str()) != 0) {
    fail_option("'{}' describes no machine; expected a topology such as 'core:4 pu:2'",
                topology_text);
  }
  load(topology);
  LocalMachine machine = describe(topology);
  const CpuSpeed speed;
  machine.gigahertz = speed.gigahertz;
  machine.float32_per_cycle = speed.float32_per_cycle;
  return machine;
}

std::string machine_text(const LocalMachine& machine) {
  const std::size_t cores = machine.cores.size();
  std::string text = fmt::format("{} {}", cores, cores == 1 ? "core" : "cores");
  if (machine.num_threads() > static_cast<int>(cores)) {
    text += fmt::format(" with {} hardware threads", machine.num_threads());
  }
  const std::size_t nodes = machine.nodes.size();
  if (nodes > 1) text += fmt::format(", {} nodes of memory", nodes);
  text += fmt::format(", {} of memory", format_bytes(machine.memory));
  for (const LocalCache& cache : machine.caches) {
    text += fmt::format(", {} x {} of L{}", cache.count, format_bytes(cache.size), cache.level);
  }
  return text;
}

}  // namespace emplace
