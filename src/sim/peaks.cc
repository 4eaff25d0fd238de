#include "sim/peaks.h"

#include <algorithm>
#include <functional>

namespace emplace {
namespace {

using Workspace = Simulator::Workspace;

constexpr std::uint32_t kNone = SimProgram::kNone;
constexpr std::uint32_t kDeviceMask = Workspace::kDeviceMask;

// A copy with several consumers is released at the last one's finish; its transfer's end is a use
// of the original.
void release_copies(const SimProgram& p, Workspace& w) {
  for (std::uint32_t made = 0; made < w.num_transfers; ++made) {
    const auto& transfer = w.transfers[made];
    if ((transfer.edges & Workspace::kMore) != 0) {
      std::uint32_t last = 0;
      w.for_each_edge(transfer.edges, [&](std::uint32_t edge) {
        last = std::max(last, w.memory[p.edge_target[edge] & ~SimProgram::kLastEdge].finish_event);
      });
      w.events[last] -= Workspace::event(p.copy_bytes[transfer.tensor], 0);
    }
    if (const std::uint32_t root = p.tensor_root[transfer.tensor]; root != kNone) {
      w.last_use[root] = std::max(w.last_use[root], transfer.end_event);
    }
  }
}

void note_local_uses(const SimProgram& p, Workspace& w) {
  for (const std::uint32_t node : p.nodes_with_roots) {
    const std::uint32_t end = p.edge_begin[node + 1];
    const std::uint32_t device = w.words[node] & kDeviceMask;
    std::uint32_t tensor = p.tensor_begin[node];
    std::uint32_t last = 0;
    for (std::uint32_t edge = p.edge_begin[node]; edge != end; ++edge) {
      const std::uint32_t target = p.edge_target[edge];
      const std::uint32_t consumer = target & ~SimProgram::kLastEdge;
      if ((w.words[consumer] & kDeviceMask) == device)
        last = std::max(last, w.memory[consumer].finish_event);
      if ((target & SimProgram::kLastEdge) != 0) {
        const std::uint32_t root = p.tensor_root[tensor++];
        if (root != kNone) w.last_use[root] = std::max(w.last_use[root], last);
        last = 0;
      }
    }
  }
}

template <bool kInstants>
void sweep(const SimProgram& p, Workspace& w) {
  for (std::uint32_t event = 0; event < w.num_events; ++event) {
    const std::uint32_t tag = Workspace::tag_of(w.events[event]);
    const std::uint32_t device = tag & kDeviceMask;
    const Bytes change = Workspace::change_of(w.events[event]);
    if constexpr (kInstants) {
      if ((tag & Workspace::kNewInstant) != 0)
        w.peaks[device] = std::max(w.peaks[device], w.used[device]);
      w.used[device] += change;
    } else {
      const Bytes used = w.used[device] += change;
      w.peaks[device] = std::max(w.peaks[device], used);
    }
  }
  for (std::uint32_t device = 0; device < p.num_devices; ++device) {
    w.peaks[device] = std::max(w.peaks[device], w.used[device]);
  }
}

void use_residents(const SimProgram& p, const Placement& placement, Workspace& w) {
  std::fill(w.used.begin(), w.used.end(), 0);
  for (std::size_t i = 0; i < p.resident_ops.size(); ++i) {
    w.used[placement[p.resident_ops[i]]] += p.resident_bytes[i];
  }
}

}  // namespace

void find_peaks(const SimProgram& program, const Placement& placement,
                Simulator::Workspace& workspace, bool instants) {
  std::fill(workspace.last_use.begin(), workspace.last_use.end(), 0);
  release_copies(program, workspace);
  note_local_uses(program, workspace);
  for (std::size_t root = 0; root < program.root_bytes.size(); ++root) {
    workspace.events[workspace.last_use[root]] -= Workspace::event(program.root_bytes[root], 0);
  }
  use_residents(program, placement, workspace);
  std::fill(workspace.peaks.begin(), workspace.peaks.end(), 0);
  if (instants) {
    sweep<true>(program, workspace);
  } else {
    sweep<false>(program, workspace);
  }
}

bool fits_without_release(const SimProgram& p, const Placement& placement,
                          Simulator::Workspace& w) {
  use_residents(p, placement, w);
  for (std::uint32_t node = 0; node < p.num_nodes(); ++node) {
    w.used[w.words[node] & kDeviceMask] += p.memory[node].alloc_at_start;
  }
  for (std::uint32_t made = 0; made < w.num_transfers; ++made) {
    w.used[w.transfers[made].to] += p.copy_bytes[w.transfers[made].tensor];
  }
  return std::equal(w.used.begin(), w.used.end(), p.capacities.begin(), std::less_equal<>{});
}

}  // namespace emplace
