// What ranks agree on: which devices are whose, how far their clocks are apart, and what everybody
// does next. Rank 0 decides, from what all have reported; nothing else needs all of them at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <emplace/error.h>

#include "base/ids.h"
#include "base/units.h"

#include "cluster/cluster.h"

#include "exec/machine.h"
#include "exec/peers.h"

namespace emplace::exec {

// A rank is lost, and with it what all are about to do.
struct RankLost {
  std::string text;  // "rank 2, with device 'cpu2', is lost: ..."
};

// The rank of every device: in order, as evenly as they can be shared. Throws an Error where ranks
// would be left without one.
std::vector<int> ranks_of_devices(const Cluster& cluster, int ranks);

// A question to another rank and the answer, by the clock here and the one there.
struct RoundTrip {
  Nanoseconds asked = 0;
  Nanoseconds there = 0;
  Nanoseconds answered = 0;
};
// How much more the clock there shows: by the quickest, whose answer was half-way best.
Nanoseconds clock_offset(std::span<const RoundTrip> trips);

class Ranks final : private PeerEvents {
 public:
  // What a program hears of the others, on the peers' thread.
  class Events {
   public:
    virtual ~Events() = default;
    virtual void heard(int from, const Notice& notice) = 0;
    virtual void broken(const std::string& why) = 0;
  };

  // The peers outlive it. Every rank makes one, at the same time.
  Ranks(Peers& peers, std::shared_ptr<const Cluster> cluster);
  ~Ranks() override;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  Peers& peers() { return peers_; }
  int rank() const { return peers_.rank(); }
  int size() const { return peers_.size(); }
  bool first() const { return rank() == 0; }
  int of(DeviceId device) const { return rank_of_[device]; }
  bool here(DeviceId device) const { return of(device) == rank(); }
  const std::vector<DeviceId>& devices_here() const { return devices_here_; }

  // The following four are called by every rank, in the same order; they throw RankLost.
  //
  // Everybody reports; rank 0 gets all reports, by rank, and has a decision for each.
  struct Words {
    std::vector<std::int64_t> numbers = {};
    std::string text = {};
  };
  using Decide = std::function<std::vector<Words>(std::vector<Words>& reports)>;
  Words agree(Words report, const Decide& decide);
  // Throws the Error of the lowest rank that has one, everywhere.
  void share_error(const std::optional<Error>& mine);
  // At rank 0, everybody's lines, each once and sorted; elsewhere one's own.
  std::vector<std::string> gather_lines(std::vector<std::string> lines);
  // Where each device is, seen from here.
  std::vector<DevicePlace> places();

  // Rank 0 alone: how far the others' clocks are ahead of its own, by rank; asked again when that
  // was some time ago.
  const std::vector<Nanoseconds>& offsets();
  Nanoseconds slowest_round_trip() const { return slowest_; }

  // Programs are numbered alike everywhere, and listen as long as they live.
  std::int64_t next_program() { return ++programs_; }
  void attach(std::int64_t program, Events* events);
  void detach(std::int64_t program);
  void tell(int to, Notice notice) { peers_.tell(to, std::move(notice)); }
  bool broken() const;

 private:
  using Clock = std::chrono::steady_clock;

  void heard(int from, Notice notice) override;
  void lost(int rank, const std::string& why) override;
  void break_off(const std::string& why);
  std::string name_of(int rank) const;
  Words wait_for(std::unique_lock<std::mutex>& lock, Notice::Kind kind, int from,
                 std::int64_t round);
  std::vector<RoundTrip> ask_times(int rank);

  Peers& peers_;
  std::shared_ptr<const Cluster> cluster_;
  std::vector<int> rank_of_;  // by device
  std::vector<DeviceId> devices_here_;
  std::vector<std::string> machines_;  // by rank

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::int64_t, int>, Words> reports_;              // by round and rank
  std::map<std::int64_t, Words> decisions_;                            // by round
  std::map<std::int64_t, std::pair<Nanoseconds, Nanoseconds>> pongs_;  // there, and back here
  std::optional<std::string> broken_;
  std::int64_t round_ = 0;
  std::int64_t pings_ = 0;

  std::vector<Nanoseconds> offsets_;  // by rank
  Nanoseconds slowest_ = 0;
  std::optional<Clock::time_point> aligned_;

  std::mutex events_mutex_;                 // held while a program hears
  std::map<std::int64_t, Events*> events_;  // by program
  std::int64_t programs_ = 0;
};

}  // namespace emplace::exec
