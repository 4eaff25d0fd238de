// Makes the transfers of a tensor while moves are re-evaluated: one to each other device with
// consumers; those that share a multicast channel become one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/incremental_tables.h"
#include "sim/incremental_workspace.h"
#include "sim/program.h"

namespace emplace {

template <bool kRecord>
class TransferMaker {
 public:
  TransferMaker(const SimProgram& program, const MoveTables& tables, MoveWorkspace& workspace)
      : p_(program), t_(tables), w_(workspace) {}

  void begin() {
    ++w_.round;
    first_ = static_cast<std::uint32_t>(w_.transfers.size());
  }

  // The edge leads to another device: it joins the transfer there, or makes one.
  void add(std::uint32_t tensor, std::uint32_t edge, std::uint32_t from, std::uint32_t to) {
    auto& latest = w_.transfer_to[to];
    if (latest.round == w_.round) {
      auto& transfer = w_.transfers[latest.transfer];
      (kRecord ? w_.next_edge : w_.made_next_edge)[edge] = transfer.edges;
      transfer.edges = edge | MoveWorkspace::kMore;
    } else {
      latest = {w_.round, static_cast<std::uint32_t>(w_.transfers.size())};
      const auto& pair = p_.pairs[from * p_.num_devices + to];
      const auto row = static_cast<std::size_t>(pair.link_class) * p_.num_tensors();
      auto& transfer = w_.transfers.emplace_back();
      transfer.length = p_.transfer_durations[row + tensor];
      transfer.hold = pair.hold;
      transfer.tensor = tensor;
      transfer.edges = edge;
      transfer.also = kNone;
      transfer.channel = pair.channel;
      transfer.from = static_cast<DeviceId>(from);
      transfer.to = transfer.lowest_to = static_cast<DeviceId>(to);
    }
    if constexpr (kRecord) w_.input_transfer[t_.input_of_edge[edge]] = latest.transfer;
  }

  // All destinations are known. Returns the first transfer, or kNone.
  std::uint32_t end(std::uint32_t tensor) {
    const bool any = first_ < w_.transfers.size();
    auto& state = w_.tensors[tensor];
    (kRecord ? state.sent : state.made) = any ? first_ : kNone;
    if (any) join_multicasts();
    return any ? first_ : kNone;
  }

 private:
  static constexpr std::uint32_t kNone = MoveWorkspace::kNone;

  void join_multicasts() {
    const auto end = static_cast<std::uint32_t>(w_.transfers.size());
    for (std::uint32_t made = first_; made < end; ++made) {
      auto& carried = w_.transfers[made];
      if (!p_.pairs[carried.from * p_.num_devices + carried.to].multicast) continue;
      auto& latest = w_.multicast_on[carried.channel];
      if (latest.round != w_.round) {
        latest = {w_.round, made};
        continue;
      }
      auto& carrier = w_.transfers[latest.transfer];
      carrier.length = std::max(carrier.length, carried.length);
      carrier.hold = std::max(carrier.hold, carried.hold);
      carrier.lowest_to = std::min(carrier.lowest_to, carried.lowest_to);
      carried.carried = true;
      carried.also = carrier.also;
      carrier.also = made;
    }
  }

  const SimProgram& p_;
  const MoveTables& t_;
  MoveWorkspace& w_;
  std::uint32_t first_ = 0;
};

}  // namespace emplace
