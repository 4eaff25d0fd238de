// What every step of a stream does, for one placement: laid out once, so that many steps in flight
// can be simulated one event at a time (sim/stream_run.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "sim/placement.h"

namespace emplace {

struct StreamPlan {
  // The placement must be valid.
  StreamPlan(const Problem& problem, const Placement& placement);

  static constexpr std::uint32_t kNone = 0xffffffff;

  // Memory that one step takes when its op or transfer starts and gives back after its last use.
  struct Block {
    DeviceId device = 0;
    Bytes bytes = 0;
    std::uint32_t uses = 0;
  };
  // One transfer, however many destinations it serves.
  struct Sending {
    TensorId tensor = 0;
    DeviceId from = 0;
    DeviceId lowest_to = 0;
    ChannelId channel = kNoChannel;
    Nanoseconds length = 0;  // 0: instant, uses no channel
    bool unlimited = false;  // waits for no other, and is no load of its channel
    Nanoseconds hold = 0;
    std::uint32_t block = kNone;  // where the tensor lies until it has been sent
  };

  // Ops.
  std::vector<DeviceId> device;
  std::vector<Nanoseconds> duration;
  std::vector<std::uint32_t> waits;   // for so many tensors and ops
  std::vector<Bytes> temp;            // while it runs, less what it writes over
  Csr<std::uint32_t> followers;       // wait for its finish, once for each entry
  Csr<std::uint32_t> sendings_of_op;  // queued at its finish
  Csr<std::uint32_t> made;            // blocks that begin at its start
  Csr<std::uint32_t> used;            // blocks of which its finish ends a use

  std::vector<Sending> sendings;
  Csr<DeviceId> destinations;     // by sending, ascending
  Csr<std::uint32_t> receivers;   // ops that wait for the sending
  Csr<std::uint32_t> copies;      // blocks that begin at its start
  std::vector<Block> blocks;      // of one step
  std::vector<Bytes> resident;    // by device, for the whole stream
  std::vector<Nanoseconds> gaps;  // by device
  ChannelId num_channels = 0;
  Nanoseconds largest_load = 0;  // of any device or channel, with gaps and holds

 private:
  class Builder;
};

}  // namespace emplace
