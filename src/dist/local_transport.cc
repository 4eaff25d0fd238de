#include "dist/local_transport.h"

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace emplace::dist {

class LocalWorld {
 public:
  explicit LocalWorld(int size)
      : inboxes_(static_cast<std::size_t>(size)), silent_(static_cast<std::size_t>(size), false) {}

  int size() const { return static_cast<int>(inboxes_.size()); }

  void silence(int rank, bool silent) {
    const std::lock_guard lock(mutex_);
    silent_[static_cast<std::size_t>(rank)] = silent;
  }

  void send(int from, int to, std::string bytes) {
    const std::lock_guard lock(mutex_);
    if (is_silent(from) || is_silent(to)) return;
    inboxes_[static_cast<std::size_t>(to)].push_back({from, std::move(bytes)});
  }

  std::optional<Envelope> receive(int rank) {
    const std::lock_guard lock(mutex_);
    auto& inbox = inboxes_[static_cast<std::size_t>(rank)];
    if (is_silent(rank) || inbox.empty()) return std::nullopt;
    Envelope first = std::move(inbox.front());
    inbox.pop_front();
    return first;
  }

  Transport::Ticket post(int from, int to, int tag, std::span<const std::byte> source,
                         std::span<std::byte> target, bool receives) {
    const std::lock_guard lock(mutex_);
    const Transport::Ticket ticket = ++last_ticket_;
    owner_[ticket] = receives ? to : from;
    Meeting& meeting = meetings_[{from, to, tag}];
    if (receives) {
      meeting.receives.push_back({ticket, target});
    } else {
      meeting.sends.push_back({ticket, source});
    }
    if (!is_silent(from) && !is_silent(to)) meet(meeting);
    return ticket;
  }

  bool done(Transport::Ticket ticket) {
    const std::lock_guard lock(mutex_);
    if (done_.erase(ticket) == 0) return false;
    owner_.erase(ticket);
    return true;
  }

  std::vector<Transport::Ticket> take_done(int rank) {
    const std::lock_guard lock(mutex_);
    std::vector<Transport::Ticket> tickets;
    for (auto at = done_.begin(); at != done_.end();) {
      const auto owner = owner_.find(at->first);
      if (owner->second != rank) {
        ++at;
        continue;
      }
      tickets.push_back(at->first);
      owner_.erase(owner);
      at = done_.erase(at);
    }
    return tickets;
  }

 private:
  struct Meeting {
    std::deque<std::pair<Transport::Ticket, std::span<const std::byte>>> sends;
    std::deque<std::pair<Transport::Ticket, std::span<std::byte>>> receives;
  };

  bool is_silent(int rank) const { return silent_[static_cast<std::size_t>(rank)]; }

  void meet(Meeting& meeting) {
    while (!meeting.sends.empty() && !meeting.receives.empty()) {
      const auto [sent, source] = meeting.sends.front();
      const auto [received, target] = meeting.receives.front();
      EMPLACE_CHECK(source.size() == target.size());
      if (!source.empty()) std::memcpy(target.data(), source.data(), source.size());
      done_[sent] = done_[received] = true;
      meeting.sends.pop_front();
      meeting.receives.pop_front();
    }
  }

  std::mutex mutex_;
  std::vector<std::deque<Envelope>> inboxes_;
  std::vector<bool> silent_;
  std::map<std::tuple<int, int, int>, Meeting> meetings_;  // by sender, receiver and tag
  std::map<Transport::Ticket, bool> done_;
  std::map<Transport::Ticket, int> owner_;
  Transport::Ticket last_ticket_ = 0;
};

namespace {

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalWorld> world, int rank, int ranks_here)
      : world_(std::move(world)), rank_(rank), ranks_here_(ranks_here) {}

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  std::string host() const override { return "here"; }
  int ranks_here() const override { return ranks_here_; }
  int rank_here() const override { return rank_; }
  void send(int to, std::string bytes) override { world_->send(rank_, to, std::move(bytes)); }
  std::optional<Envelope> receive() override { return world_->receive(rank_); }
  Ticket send_from(int to, int tag, std::span<const std::byte> buffer) override {
    return world_->post(rank_, to, tag, buffer, {}, false);
  }
  Ticket receive_into(int from, int tag, std::span<std::byte> buffer) override {
    return world_->post(from, rank_, tag, {}, buffer, true);
  }
  bool done(Ticket ticket) override { return world_->done(ticket); }
  std::vector<Ticket> take_done() override { return world_->take_done(rank_); }
  void leave(double) override {}

 private:
  std::shared_ptr<LocalWorld> world_;
  int rank_;
  int ranks_here_;
};

}  // namespace

LocalRanks::LocalRanks(int size) : world_(std::make_shared<LocalWorld>(size)) {}

LocalRanks::~LocalRanks() = default;

std::unique_ptr<Transport> LocalRanks::take(int rank) {
  return std::make_unique<LocalTransport>(world_, rank, world_->size());
}

std::unique_ptr<Transport> silent_transport(int size) {
  return std::make_unique<LocalTransport>(std::make_shared<LocalWorld>(size), 0, 1);
}

void LocalRanks::silence(int rank, bool silent) {
  world_->silence(rank, silent);
}

}  // namespace emplace::dist
