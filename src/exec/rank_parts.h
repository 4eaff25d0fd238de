// What of a program is on other ranks: tensors go there and come from there, ops wait for ops
// there, steps begin together, and what was measured is gathered at rank 0.
//
// For every tensor that comes from another rank there is a buffer, from the time when the program
// is loaded, and its receive is posted before the step begins; so whatever is sent has a place to
// go, and every send meets its receive even where a step fails: what was not computed is sent as
// zeros.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/machine.h"
#include "exec/ranks.h"
#include "exec/spin.h"
#include "exec/step_host.h"

namespace emplace::exec {

// A step as it was measured, on this rank or on all; times are the clock's.
struct StepParts {
  std::optional<Failure> failure = std::nullopt;
  Nanoseconds started = 0;
  Nanoseconds ended = 0;
  std::vector<Interval> ops = {};
  std::vector<Interval> transfers = {};
  std::vector<Bytes> temporary = {};
  std::vector<std::optional<double>> losses = {};  // as in StepPlan::losses
  std::vector<MemoryRecord> memory = {};           // by device
};

class RankParts final : private Ranks::Events {
 public:
  // `program`: its number (Ranks::next_program). Throws an Error where more tensors are sent than
  // there are tags, or from or to a GPU.
  RankParts(StepHost& host, Machine& machine, Ranks& ranks, std::int64_t program);
  ~RankParts() override;

  bool here(DeviceId device) const { return ranks_.here(device); }
  const std::vector<DeviceId>& devices() const { return ranks_.devices_here(); }
  // Of a tensor's copy here: comes from another rank.
  bool arrives(CopyId copy) const { return arrives_[copy] != 0; }

  // Makes the buffers.
  void prepare();
  // Every rank has loaded its part, or none has: throws an Error where they did not load the same
  // program. A failure is everybody's from then on. Gathers what is said of types.
  void join(const std::optional<Failure>& failure, std::vector<std::string>& slow_types);
  // Posts the receives and waits for the others. When the step starts; nothing: it does not.
  std::optional<Nanoseconds> begin(const std::optional<Failure>& failure);
  // Sends a tensor, on its channel's thread; returns when the channel is free.
  void carry(TransferId transfer, Interval& time);
  // An op here is done.
  void finished(OpId op);
  // The step fails here.
  void failed(const Failure& failure);
  // All that was measured, at rank 0; elsewhere what was here, and when all had ended.
  StepParts end(StepParts parts);

 private:
  struct Incoming {
    bool came = false;
    std::optional<Nanoseconds> due = std::nullopt;
  };

  void heard(int from, const Notice& notice) override;
  void broken(const std::string& why) override;

  void number_tags();
  int rank_of(CopyId copy) const { return ranks_.of(host_.plan().copies[copy].device); }
  const Link& link_of(TransferId transfer) const;
  std::size_t size_of(TransferId transfer) const;
  void post_receive(TransferId transfer);
  void post_send(TransferId transfer, std::span<const std::byte> bytes);
  void came(TransferId transfer);
  void came_or_due(TransferId transfer, const std::function<void(Incoming&)>& change);
  void hand_over(TransferId transfer);
  void send_what_is_missing();
  void wait_for_transfers();
  std::uint64_t fingerprint() const;
  Ranks::Words report_of(const StepParts& parts) const;
  void add_report(int rank, const Ranks::Words& words, StepParts& parts) const;
  std::vector<Ranks::Words> decide_end(const std::vector<Ranks::Words>& reports,
                                       StepParts& parts) const;

  StepHost& host_;
  Machine& machine_;
  Ranks& ranks_;
  std::int64_t program_;
  std::vector<int> tags_;                            // by transfer
  std::vector<TransferId> sends_, receives_;         // to and from other ranks
  std::vector<std::uint8_t> arrives_;                // by copy
  std::map<OpId, std::vector<int>> follower_ranks_;  // of ops here

  std::atomic<std::int64_t> step_{-1};
  std::atomic<bool> in_step_{false};
  std::atomic<bool> failed_here_{false};
  std::vector<Nanoseconds> offsets_;     // of clocks, by rank
  std::vector<std::uint8_t> posted_;     // by transfer: its send
  std::vector<std::atomic<bool>> sent_;  // by transfer
  std::vector<Tensor> outgoing_;         // by transfer: what is being sent
  std::vector<std::byte> zeros_;         // sent in place of what was not computed
  std::vector<Nanoseconds> arrivals_;    // by transfer: when it came
  std::atomic<int> pending_{0};          // sends and receives under way
  Signal moved_;
  std::atomic<int> waiting_{0};  // tensors that came before their time
  std::mutex incoming_mutex_;
  std::map<TransferId, Incoming> incoming_;  // over throttled links
};

}  // namespace emplace::exec
