#include "sim/incremental_memory.h"

#include <algorithm>
#include <utility>

namespace emplace {

MoveMemory::MoveMemory(const SimProgram& program, const MoveTables& tables,
                       MoveWorkspace& workspace)
    : p_(program),
      t_(tables),
      w_(workspace),
      resident_(program.num_devices),
      sources_(program.num_devices),
      moved_resident_(program.num_devices),
      offset_(program.num_devices),
      counted_(program.num_devices),
      releases_(program.num_devices),
      roots_done_(program.root_bytes.size()) {}

void MoveMemory::set_base(const Placement& placement) {
  base_ = &placement;
  std::fill(resident_.begin(), resident_.end(), 0);
  for (std::size_t i = 0; i < p_.resident_ops.size(); ++i)
    resident_[placement[p_.resident_ops[i]]] += p_.resident_bytes[i];
  std::fill(sources_.begin(), sources_.end(), 0);
  for (const std::uint32_t node : p_.sources) sources_[placement[p_.op_of_node[node]]] += put(node);
  std::fill(moved_resident_.begin(), moved_resident_.end(), 0);
  enter_step();
  w_.profile.clear(resident_);
}

void MoveMemory::begin(std::span<const MovedGroup> groups, std::span<const std::uint32_t> nodes,
                       std::span<const std::uint32_t> tensors, const Problem& problem) {
  std::fill(moved_resident_.begin(), moved_resident_.end(), 0);
  for (const MovedGroup& moved : groups) {
    const Bytes bytes = problem.group_resident_bytes(moved.group);
    moved_resident_[moved.from] -= bytes;
    moved_resident_[moved.to] += bytes;
  }
  offset_ = moved_resident_;
  for (const std::uint32_t node : nodes) {
    if (p_.is_source[node] == 0) continue;
    offset_[(*base_)[p_.op_of_node[node]]] -= put(node);
    offset_[w_.nodes[node].device] += put(node);
  }
  find_changes(tensors);
}

void MoveMemory::enter_step() {
  w_.clear_peaks();
  for (std::uint32_t d = 0; d < p_.num_devices; ++d) {
    w_.used[d] = resident_[d] + moved_resident_[d];
    w_.raise_peak(p_, d, w_.used[d]);
  }
}

void MoveMemory::enter_after_sources() {
  for (std::uint32_t d = 0; d < p_.num_devices; ++d)
    w_.used[d] = resident_[d] + sources_[d] + offset_[d];
}

void MoveMemory::enter(std::uint32_t from, std::uint32_t to) {
  pass_over(from, to);
  for (std::uint32_t d = 0; d < p_.num_devices; ++d) w_.used[d] = w_.profile.at(d, to) + offset_[d];
}

void MoveMemory::leave(std::uint32_t matched) {
  for (std::uint32_t d = 0; d < p_.num_devices; ++d)
    offset_[d] = w_.used[d] - w_.profile.at(d, matched);
}

void MoveMemory::pass_over(std::uint32_t from, std::uint32_t to) {
  std::fill(counted_.begin(), counted_.end(), from + 1);
  auto change =
      std::upper_bound(changes_.begin(), changes_.end(), from,
                       [](std::uint32_t instant, const Change& c) { return instant < c.instant; });
  for (; change != changes_.end() && change->instant <= to; ++change) {
    count(change->device, counted_[change->device], change->instant - 1);
    counted_[change->device] = change->instant;
    offset_[change->device] += change->by;
  }
  for (std::uint32_t d = 0; d < p_.num_devices; ++d) count(d, counted_[d], to);
}

void MoveMemory::count(std::uint32_t device, std::uint32_t from, std::uint32_t to) {
  if (from > to) return;
  // Peaks within the capacity are of no interest.
  const Bytes known = std::max(w_.peaks[device], p_.capacities[device]);
  if (w_.profile.peak(device) + offset_[device] <= known) return;
  w_.raise_peak(p_, device, w_.profile.max_over(device, from, to) + offset_[device]);
}

// ---- releases of what the moves touch

void MoveMemory::find_changes(std::span<const std::uint32_t> tensors) {
  changes_.clear();
  for (const std::uint32_t tensor : tensors) {
    find_copies(tensor);
    find_original(tensor);
  }
  std::sort(changes_.begin(), changes_.end(),
            [](const Change& a, const Change& b) { return a.instant < b.instant; });
}

MoveMemory::Release& MoveMemory::release_on(std::uint32_t device) {
  if (!releases_[device].listed) {
    releases_[device].listed = true;
    release_devices_.push_back(device);
  }
  return releases_[device];
}

void MoveMemory::add_releases(Bytes bytes) {
  for (const std::uint32_t device : release_devices_) {
    const Release release = std::exchange(releases_[device], {});
    if (release.in_base == release.here) continue;
    if (release.in_base != 0) changes_.push_back({release.in_base, device, bytes});
    if (release.here != 0) changes_.push_back({release.here, device, -bytes});
  }
  release_devices_.clear();
}

void MoveMemory::find_copies(std::uint32_t tensor) {
  if (p_.copy_bytes[tensor] == 0) return;
  const std::uint32_t producer = t_.tensor_node[tensor];
  const DeviceId home_in_base = (*base_)[p_.op_of_node[producer]];
  const DeviceId home = w_.nodes[producer].device;
  for (auto edge = t_.tensor_edges[tensor]; edge < t_.tensor_edges[tensor + 1]; ++edge) {
    const std::uint32_t consumer = p_.edge_target[edge] & ~SimProgram::kLastEdge;
    const auto& node = w_.nodes[consumer];
    const DeviceId in_base = (*base_)[p_.op_of_node[consumer]];
    if (in_base != home_in_base) {
      Release& release = release_on(in_base);
      release.in_base = std::max(release.in_base, node.finish);
    }
    if (node.device != home) {
      Release& release = release_on(node.device);
      release.here = std::max(release.here, node.finish);
    }
  }
  add_releases(p_.copy_bytes[tensor]);
}

void MoveMemory::find_original(std::uint32_t tensor) {
  const std::uint32_t producer = t_.tensor_node[tensor];
  const DeviceId home_in_base = (*base_)[p_.op_of_node[producer]];
  const DeviceId home = w_.nodes[producer].device;
  const std::uint32_t root = p_.tensor_root[tensor];
  if (root == SimProgram::kNone) {
    if (p_.sole_bytes[tensor] == 0) return;
    note_uses(tensor, home_in_base, home);
    add_releases(p_.sole_bytes[tensor]);
    return;
  }
  if (roots_done_[root] == w_.evaluation) return;
  roots_done_[root] = w_.evaluation;
  for (const std::uint32_t lies_in : t_.tensors_of_root[root])
    note_uses(lies_in, home_in_base, home);
  add_releases(p_.root_bytes[root]);
}

void MoveMemory::note_uses(std::uint32_t tensor, DeviceId home_in_base, DeviceId home) {
  Release& in_base = release_on(home_in_base);
  Release& here = release_on(home);
  for (auto edge = t_.tensor_edges[tensor]; edge < t_.tensor_edges[tensor + 1]; ++edge) {
    const std::uint32_t consumer = p_.edge_target[edge] & ~SimProgram::kLastEdge;
    const auto& node = w_.nodes[consumer];
    if ((*base_)[p_.op_of_node[consumer]] == home_in_base)
      in_base.in_base = std::max(in_base.in_base, node.finish);
    if (node.device == home) here.here = std::max(here.here, node.finish);
  }
  // Of a tensor that the moves touch, the base's transfers stand for the candidate's: both have
  // ended before any jump.
  for (std::uint32_t made = w_.tensors[tensor].sent;
       made < w_.num_base_transfers && w_.transfers[made].tensor == tensor; ++made) {
    in_base.in_base = std::max(in_base.in_base, w_.transfers[made].end);
    here.here = std::max(here.here, w_.transfers[made].end);
  }
}

}  // namespace emplace
