// The other processes that execute a step together with this one, as ranks: whoever starts them
// brings an implementation, and this room sees neither sockets nor MPI.
//
// Two things pass between ranks. Tensors go from buffer to buffer: the receiver says beforehand,
// by a tag for each tensor, where it wants them. Everything else is a notice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace emplace::exec {

struct Notice {
  enum class Kind : std::uint8_t {
    kReport,    // to rank 0, which waits for everybody's
    kDecision,  // its answer
    kPing,
    kPong,      // with the time there
    kBroken,    // a rank is lost
    kFollowed,  // of a step: an op is done that others come after
    kDue,       // when a tensor may be handed over
    kFailed,    // the step is to end
  };
  static constexpr Kind kLast = Kind::kFailed;

  Kind kind = Kind::kReport;
  std::int64_t round = 0;  // of reports and decisions; else the program
  std::int64_t step = 0;
  std::vector<std::int64_t> numbers = {};
  std::string text = {};
};

// What a rank hears, on a thread of the peers'. Returns soon and throws nothing.
class PeerEvents {
 public:
  virtual ~PeerEvents() = default;

  virtual void heard(int from, Notice notice) = 0;
  // Nothing will come from it any more; once for each rank.
  virtual void lost(int rank, const std::string& why) = 0;
};

// Any thread may call anything, also from within an event; nothing waits for another rank.
class Peers {
 public:
  // Tags are below this, for each ordered pair of ranks.
  static constexpr int kMostTags = 32'768;

  virtual ~Peers() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The same text on ranks that share a machine and its clock.
  virtual std::string machine() const = 0;

  // From now on these hear; nullptr: nobody, once it has returned. What came while nobody listened
  // is kept.
  virtual void listen(PeerEvents* events) = 0;
  // Notices from one rank to another come in the order in which they were sent.
  virtual void tell(int to, Notice notice) = 0;

  // The buffer stays as it is until `done` is called, on the peers' thread: it may be used again,
  // or is filled. The n-th send with a tag meets the n-th receive with it, which has its size.
  virtual void send(int to, int tag, std::span<const std::byte> buffer,
                    std::function<void()> done) = 0;
  virtual void receive(int from, int tag, std::span<std::byte> buffer,
                       std::function<void()> done) = 0;
  // When it has returned, no `done` of what was posted before is called. Buffers that were not done
  // must stay as long as the process does.
  virtual void forget() = 0;
};

}  // namespace emplace::exec
