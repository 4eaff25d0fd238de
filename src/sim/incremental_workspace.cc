#include "sim/incremental_workspace.h"

#include <algorithm>

namespace emplace {

MoveWorkspace::MoveWorkspace(const SimProgram& program, const MoveTables& tables)
    : nodes(program.num_nodes()),
      next_edge(program.edge_target.size()),
      arrival(tables.input_tensor.size()),
      input_transfer(tables.input_tensor.size()),
      tensors(program.num_tensors()),
      devices(program.num_devices),
      channels(program.num_channels, ChannelState{kNone, kNone, kNone, true, false}),
      passing(program.num_channels),
      roots(program.root_bytes.size()),
      running(2 * static_cast<std::size_t>(program.num_slots()) + 64),
      arrivals(program.num_nodes()),
      startable(program.num_slots()),
      transfer_to(program.num_devices),
      multicast_on(program.num_channels),
      made_next_edge(program.edge_target.size()),
      used(program.num_devices),
      peaks(program.num_devices),
      touched_at(program.num_devices) {
  for (std::uint32_t d = 0; d < program.num_devices; ++d) {
    devices[d].durations =
        program.durations.data() +
        static_cast<std::size_t>(program.column_of_device[d]) * program.num_nodes();
    devices[d].head = 0;
    devices[d].node = kNone;
    devices[d].idle = true;
    devices[d].finished = false;
  }
}

void MoveWorkspace::clear_record() {
  for (Node& node : nodes) node = {kNone, kNone, kNone, 0, 0, 0, false};
  num_base_transfers = 0;
  begin_evaluation();  // in which no tensor is touched
  num_base_transfers = kNone;
  instants.assign(1, {});
  log.clear();
  snapshots.assign(1, {});
  snapshot_items.clear();
}

void MoveWorkspace::begin_segment(std::uint32_t after) {
  origin = after;
  if (++segment != 0) return;
  segment = 1;
  for (Node& node : nodes) node.segment = 0;
  for (Transfer& transfer : transfers) transfer.segment = 0;
  for (RootState& root : roots) root.segment = 0;
}

void MoveWorkspace::begin_evaluation() {
  transfers.resize(num_base_transfers);
  if (++evaluation != 0) return;
  evaluation = 1;
  for (TensorState& tensor : tensors) tensor.evaluation = 0;
}

void MoveWorkspace::clear_peaks() {
  std::fill(peaks.begin(), peaks.end(), 0);
  overflow = 0;
}

void MoveWorkspace::raise_peak(const SimProgram& program, std::uint32_t device, Bytes to) {
  if (to <= peaks[device]) return;
  const Bytes capacity = program.capacities[device];
  overflow += std::max<Bytes>(0, to - capacity) - std::max<Bytes>(0, peaks[device] - capacity);
  peaks[device] = to;
}

const MoveWorkspace::Snapshot& MoveWorkspace::snapshot_before(std::uint32_t instant) const {
  const auto after = std::upper_bound(
      snapshots.begin(), snapshots.end(), instant,
      [](std::uint32_t value, const Snapshot& snapshot) { return value < snapshot.instant; });
  return *(after - 1);
}

}  // namespace emplace
