// A rank's link to the others: a thread that takes messages as they come, gives signs of life and
// finds out who is gone. MPI does not say that; a rank that was silent for too long is taken as
// lost, for good, and whatever it says later is answered with the request to leave.
//
// Rank 0 talks with everybody, the others with rank 0 alone, unless all are to talk with all; but
// notices go between any two.
//
// Every message has a header: what it is, in which version of this language, and how long. One that
// makes no sense, by its header or to whoever reads the rest, makes its sender lost.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "dist/transport.h"
#include "dist/wire.h"

namespace emplace::dist {

// What every message begins with.
inline constexpr std::uint32_t kMagic = 0x4c504d45;  // "EMPL"
inline constexpr std::uint16_t kVersion = 2;

enum class Kind : std::uint16_t {
  kPulse,   // alive
  kReady,   // to rank 0: has read its input; which, and of which build it is
  kFailed,  // to rank 0: could not
  kTask,    // from rank 0: do this
  kStop,    // from rank 0: end the task, the best so far is its result
  kNews,    // either way, while a task runs
  kResult,  // to rank 0
  kError,   // to rank 0: in place of a result
  kLeave,   // from rank 0: no more tasks
  kBye,     // to rank 0: has ended its tasks
  kEnd,     // from rank 0: leave, and whether MPI is to be ended in order
  kNotice,  // between any two: of those who execute steps together, or share a job
};
inline constexpr auto kLastKind = Kind::kNotice;

struct PostOptions {
  double pulse_seconds = 0.2;  // between signs of life
  double lost_after = 10;      // seconds of silence
  bool everybody = false;      // all talk with all
  // Of the program: those who work together must be of one. The text outlives the post.
  std::string_view build = {};
  // How long the thread sleeps: the longer, the longer nothing has come, since many ranks that
  // share a core would do nothing but look for messages.
  std::chrono::microseconds nap{500};
  std::chrono::microseconds longest_nap{3'000};
};

class Post {
 public:
  // Called from the post's thread.
  class Listener {
   public:
    virtual ~Listener() = default;
    // An Error says that it makes no sense.
    virtual void on_message(int from, Kind kind, Reader& body) = 0;
    virtual void on_lost(int rank, const std::string& why) = 0;
    // After every nap.
    virtual void on_tick() = 0;
  };

  // The listener outlives it.
  Post(std::unique_ptr<Transport> transport, const PostOptions& options, Listener& listener);
  // Ends the thread. Says nothing to anybody.
  ~Post();
  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  std::string host() const { return transport_->host(); }
  const PostOptions& options() const { return options_; }
  // For buffers; messages are the post's.
  Transport& transport() { return *transport_; }

  // From any thread. Nothing is sent to those who are lost, as far as this rank knows.
  void send(int to, Kind kind, std::string_view body = {});
  bool present(int rank) const;

  // Ends the thread; with `in_order`, which all must agree on, MPI as well.
  void close(bool in_order);

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    std::atomic<bool> present{true};
    std::atomic<Clock::rep> spoken{0};  // when something was sent last
    Clock::time_point heard;            // by the post's thread alone, as the next
    Clock::time_point dismissed{};      // when it was last asked to leave
  };

  void work();
  void take(const Envelope& envelope);
  void keep_alive(Clock::time_point now);
  void lose(int rank, const std::string& why);
  Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  bool talks_with(int rank) const {
    return rank != this->rank() && (rank == 0 || this->rank() == 0 || options_.everybody);
  }

  std::unique_ptr<Transport> transport_;
  PostOptions options_;
  Listener& listener_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank
  Clock::time_point last_turn_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace emplace::dist
