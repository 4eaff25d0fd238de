// Messages over MPI. The only file that sees it.
//
// After start-up everything is point to point and non-blocking, since a call that waits for a rank
// that is gone waits for ever, and nothing else says that it is gone. A message is found by a
// matched probe, so that its length is known before memory is taken for it, and received into a
// buffer that stands in the sender's queue: long messages take their time, and the order of one
// sender's messages is kept all the same. What is sent to a rank that is gone stays in the outbox.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <mpi.h>

#include "base/check.h"
#include "base/error.h"

#include "dist/transport.h"

namespace emplace::dist {
namespace {

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    if (level < MPI_THREAD_SERIALIZED) {
      fail(ErrorKind::kUnsupported, "this MPI does not let several threads use it");
    }
    // Copies, so that nobody else's messages come between: made together, at the start.
    MPI_Comm_dup(MPI_COMM_WORLD, &messages_);
    MPI_Comm_dup(MPI_COMM_WORLD, &buffers_);
    MPI_Comm_set_errhandler(messages_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(buffers_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(messages_, &rank_);
    MPI_Comm_size(messages_, &size_);
    incoming_.resize(static_cast<std::size_t>(size_));
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    MPI_Get_processor_name(name, &length);
    host_.assign(name, static_cast<std::size_t>(length));
    MPI_Comm here = MPI_COMM_NULL;
    MPI_Comm_split_type(messages_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &ranks_here_);
    MPI_Comm_rank(here, &rank_here_);
    MPI_Comm_free(&here);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return host_; }
  int ranks_here() const override { return ranks_here_; }
  int rank_here() const override { return rank_here_; }

  void send(int to, std::string bytes) override {
    EMPLACE_CHECK(bytes.size() <= kMostBytes);
    const std::lock_guard lock(mutex_);
    const std::string& out = *outbox_.emplace_back(std::make_unique<std::string>(std::move(bytes)));
    MPI_Isend(out.data(), static_cast<int>(out.size()), MPI_BYTE, to, 0, messages_,
              &sending_.emplace_back(MPI_REQUEST_NULL));
  }

  std::optional<Envelope> receive() override {
    const std::lock_guard lock(mutex_);
    // Asking MPI may cost a turn of the processor, where ranks share it: once for all that has
    // come.
    if (auto arrived = take_arrived()) return arrived;
    empty_outbox();
    while (probe()) {
    }
    return take_arrived();
  }

  Ticket send_from(int to, int tag, std::span<const std::byte> buffer) override {
    check(buffer.size(), tag);
    const std::lock_guard lock(mutex_);
    MPI_Request& request = new_request();
    MPI_Isend(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, to, tag, buffers_,
              &request);
    return last_ticket_;
  }

  Ticket receive_into(int from, int tag, std::span<std::byte> buffer) override {
    check(buffer.size(), tag);
    const std::lock_guard lock(mutex_);
    MPI_Request& request = new_request();
    MPI_Irecv(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, from, tag, buffers_,
              &request);
    return last_ticket_;
  }

  bool done(Ticket ticket) override {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(tickets_.begin(), tickets_.end(), ticket);
    EMPLACE_CHECK(found != tickets_.end());
    const auto at = found - tickets_.begin();
    if (!is_complete(requests_[static_cast<std::size_t>(at)])) return false;
    tickets_.erase(found);
    requests_.erase(requests_.begin() + at);
    return true;
  }

  std::vector<Ticket> take_done() override {
    const std::lock_guard lock(mutex_);
    std::vector<Ticket> taken;
    if (requests_.empty()) return taken;
    indices_.resize(requests_.size());
    int count = 0;
    MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, indices_.data(),
                 MPI_STATUSES_IGNORE);
    if (count == MPI_UNDEFINED || count <= 0) return taken;
    std::sort(indices_.begin(), indices_.begin() + count);
    std::size_t kept = 0;
    int next = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (next < count && indices_[static_cast<std::size_t>(next)] == static_cast<int>(i)) {
        taken.push_back(tickets_[i]);
        ++next;
        continue;
      }
      requests_[kept] = requests_[i];
      tickets_[kept++] = tickets_[i];
    }
    requests_.resize(kept);
    tickets_.resize(kept);
    return taken;
  }

  void leave(double seconds) override {
    // Finalize waits for all; where one is lost at the last moment, nobody waits for this thread.
    struct Ending {
      std::mutex mutex;
      std::condition_variable changed;
      bool over = false;
    };
    const auto ending = std::make_shared<Ending>();
    std::thread([ending] {
      MPI_Finalize();
      const std::lock_guard lock(ending->mutex);
      ending->over = true;
      ending->changed.notify_one();
    }).detach();
    std::unique_lock lock(ending->mutex);
    ending->changed.wait_for(lock, std::chrono::duration<double>(seconds),
                             [&] { return ending->over; });
  }

 private:
  struct Incoming {
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  static bool is_complete(MPI_Request& request) {
    int complete = 0;
    MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    return complete != 0;
  }

  // Until the next one.
  MPI_Request& new_request() {
    tickets_.push_back(++last_ticket_);
    return requests_.emplace_back(MPI_REQUEST_NULL);
  }

  static void check(std::size_t size, int tag) {
    EMPLACE_CHECK(size <= kMostBytes && tag >= 0 && tag < kMostTags);
  }

  std::optional<Envelope> take_arrived() {
    for (auto from = busy_.begin(); from != busy_.end(); ++from) {
      auto& queue = incoming_[static_cast<std::size_t>(*from)];
      if (!is_complete(queue.front().request)) continue;
      Envelope envelope{*from, std::move(queue.front().bytes)};
      queue.pop_front();
      // The next time it is the others' turn.
      busy_.erase(from);
      if (!queue.empty()) busy_.push_back(envelope.from);
      return envelope;
    }
    return std::nullopt;
  }

  // In one call for all, each of which would let MPI look around: what is for ranks that are gone
  // stays there.
  void empty_outbox() {
    if (sending_.empty()) return;
    int count = 0;
    sent_.resize(sending_.size());
    MPI_Testsome(static_cast<int>(sending_.size()), sending_.data(), &count, sent_.data(),
                 MPI_STATUSES_IGNORE);
    if (count == MPI_UNDEFINED || count == 0) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < sending_.size(); ++i) {
      if (sending_[i] == MPI_REQUEST_NULL) continue;  // done
      sending_[kept] = sending_[i];
      outbox_[kept++] = std::move(outbox_[i]);
    }
    sending_.resize(kept);
    outbox_.resize(kept);
  }

  bool probe() {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (MPI_Improbe(MPI_ANY_SOURCE, 0, messages_, &found, &message, &status) != MPI_SUCCESS) {
      return false;
    }
    if (found == 0) return false;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    auto& queue = incoming_[static_cast<std::size_t>(status.MPI_SOURCE)];
    if (queue.empty()) busy_.push_back(status.MPI_SOURCE);
    Incoming& in = queue.emplace_back();
    in.bytes.resize(static_cast<std::size_t>(std::max(0, count)));
    MPI_Imrecv(in.bytes.data(), count, MPI_BYTE, &message, &in.request);
    return true;
  }

  std::mutex mutex_;
  MPI_Comm messages_ = MPI_COMM_NULL;
  MPI_Comm buffers_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_here_ = 1;
  int rank_here_ = 0;
  int size_ = 1;
  std::string host_;
  std::vector<std::unique_ptr<std::string>> outbox_;  // beside the requests that send it
  std::vector<MPI_Request> sending_;
  std::vector<int> sent_;
  std::vector<std::deque<Incoming>> incoming_;  // by sender, in order
  std::deque<int> busy_;                        // who has sent something that was not taken yet
  std::vector<MPI_Request> requests_;           // of buffers
  std::vector<Ticket> tickets_;                 // theirs
  std::vector<int> indices_;
  Ticket last_ticket_ = 0;
};

}  // namespace
}  // namespace emplace::dist

extern "C" emplace::dist::Transport* emplace_join_mpi();
extern "C" emplace::dist::Transport* emplace_join_mpi() {
  return new emplace::dist::MpiTransport();
}
