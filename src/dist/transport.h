// Ranks that send each other bytes: point to point, without waiting, and without a word about ranks
// that are gone. `join_mpi` (dist/mpi.h) gives the one of this process; `local_transports`
// (dist/local_transport.h) makes several within one process, for tests.
//
// Two ways to send, which do not mix:
// * messages of any length, which the receiver takes as they come (`send`, `receive`). Who is still
//   there is a question for dist/post.h, over which searches and learning talk;
// * buffers that both sides know beforehand (`send_from`, `receive_into`), such as a step's
// tensors:
//   post the receives of a step before its sends, with a tag for each tensor, and ask `done` from a
//   thread of your own, which also is what makes transfers go on.
//
// Any thread may call anything at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace emplace::dist {

struct Envelope {
  int from = 0;
  std::string bytes;
};

class Transport {
 public:
  // Of one message or buffer.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  // Tags of buffers are below this.
  static constexpr int kMostTags = 32'768;

  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The machine that this rank is on, for people.
  virtual std::string host() const = 0;
  // How many are on it, this one included.
  virtual int ranks_here() const = 0;
  // Which of these this one is.
  virtual int rank_here() const = 0;

  // Messages from one rank to another arrive in the order in which they were sent.
  virtual void send(int to, std::string bytes) = 0;
  virtual std::optional<Envelope> receive() = 0;

  // The buffer stays as it is until `done` is true, which also ends the ticket. A transfer with a
  // rank that is gone is never done, and its buffer must outlive the process's use of MPI. The
  // n-th send with a tag meets the n-th receive with it, whose buffer has the same size.
  using Ticket = std::uint64_t;
  virtual Ticket send_from(int to, int tag, std::span<const std::byte> buffer) = 0;
  virtual Ticket receive_into(int from, int tag, std::span<std::byte> buffer) = 0;
  virtual bool done(Ticket ticket) = 0;
  // All that are done, which ends their tickets: one question for any number of them.
  virtual std::vector<Ticket> take_done() = 0;

  // The last call, by every rank, where none was lost: others wait for it in vain. Returns after
  // `seconds` whether or not the rest has left.
  virtual void leave(double seconds) = 0;
};

}  // namespace emplace::dist
