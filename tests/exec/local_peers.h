// Ranks that are threads of one process and can go wrong on purpose.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include "exec/peers.h"

namespace emplace::exec {

// Each rank has a thread on which it hears. Nothing arrives in less than a rank's thread needs to
// wake.
class LocalPeers {
 public:
  explicit LocalPeers(int size) {
    for (int rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<One>(*this, rank));
  }
  ~LocalPeers() {
    for (auto& rank : ranks_) rank->end();
  }

  Peers& rank(int i) { return *ranks_[static_cast<std::size_t>(i)]; }

  // From now on nothing comes from this rank or reaches it, which all find out.
  void silence(int gone) {
    {
      const std::lock_guard lock(mutex_);
      silent_ = gone;
    }
    One& alone = *ranks_[static_cast<std::size_t>(gone)];
    for (auto& rank : ranks_) {
      if (rank->rank() == gone) continue;
      rank->post([one = rank.get(), gone] { one->lose(gone); });
      alone.post([&alone, other = rank->rank()] { alone.lose(other); });
    }
  }

 private:
  struct Buffer {
    std::span<std::byte> bytes;
    std::function<void()> done;
    std::int64_t generation;
  };
  struct Meeting {
    std::deque<Buffer> sends, receives;
  };

  class One final : public Peers {
   public:
    One(LocalPeers& all, int rank) : all_(all), rank_(rank), thread_([this] { loop(); }) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(all_.ranks_.size()); }
    std::string machine() const override { return "here"; }

    void listen(PeerEvents* events) override {
      const std::lock_guard lock(hearing_);
      events_ = events;
      if (events_ == nullptr) return;
      for (auto& [from, notice] : kept_) events_->heard(from, std::move(notice));
      kept_.clear();
    }
    void tell(int to, Notice notice) override {
      if (all_.silent(rank_) || all_.silent(to)) return;
      One& other = *all_.ranks_[static_cast<std::size_t>(to)];
      other.post([&other, from = rank_, notice = std::move(notice)]() mutable {
        const std::lock_guard lock(other.hearing_);
        if (other.events_ == nullptr) {
          other.kept_.emplace_back(from, std::move(notice));
        } else {
          other.events_->heard(from, std::move(notice));
        }
      });
    }
    void send(int to, int tag, std::span<const std::byte> buffer,
              std::function<void()> done) override {
      auto* const data = const_cast<std::byte*>(buffer.data());
      all_.meet({rank_, to, tag}, true, {{data, buffer.size()}, std::move(done), generation_});
    }
    void receive(int from, int tag, std::span<std::byte> buffer,
                 std::function<void()> done) override {
      all_.meet({from, rank_, tag}, false, {buffer, std::move(done), generation_});
    }
    void forget() override {
      const std::lock_guard lock(hearing_);
      ++generation_;
    }

    void post(std::function<void()> event) {
      {
        const std::lock_guard lock(mutex_);
        posted_.push_back(std::move(event));
      }
      changed_.notify_one();
    }
    void finish(Buffer buffer) {
      post([this, buffer = std::move(buffer)] {
        const std::lock_guard lock(hearing_);
        if (buffer.generation == generation_) buffer.done();
      });
    }
    void lose(int gone) {
      const std::lock_guard lock(hearing_);
      if (events_ != nullptr) events_->lost(gone, "said nothing for 10 s");
    }
    void end() {
      {
        const std::lock_guard lock(mutex_);
        ending_ = true;
      }
      changed_.notify_one();
      thread_.join();
    }

   private:
    void loop() {
      std::unique_lock lock(mutex_);
      for (;;) {
        changed_.wait(lock, [&] { return !posted_.empty() || ending_; });
        if (posted_.empty()) return;
        std::function<void()> event = std::move(posted_.front());
        posted_.pop_front();
        lock.unlock();
        event();
        event = nullptr;
        lock.lock();
      }
    }

    LocalPeers& all_;
    int rank_;
    std::recursive_mutex hearing_;  // an event may post what is done at once
    PeerEvents* events_ = nullptr;
    std::vector<std::pair<int, Notice>> kept_;
    std::atomic<std::int64_t> generation_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> posted_;
    bool ending_ = false;
    std::thread thread_;
  };

  bool silent(int rank) {
    const std::lock_guard lock(mutex_);
    return silent_ == rank;
  }

  using Key = std::tuple<int, int, int>;  // from, to, tag
  void meet(const Key& key, bool is_send, Buffer buffer) {
    const std::lock_guard lock(mutex_);
    if (silent_ == std::get<0>(key) || silent_ == std::get<1>(key)) return;
    Meeting& meeting = meetings_[key];
    (is_send ? meeting.sends : meeting.receives).push_back(std::move(buffer));
    if (meeting.sends.empty() || meeting.receives.empty()) return;
    Buffer from = std::move(meeting.sends.front());
    Buffer to = std::move(meeting.receives.front());
    meeting.sends.pop_front();
    meeting.receives.pop_front();
    if (from.bytes.size() != to.bytes.size()) throw std::logic_error("sizes differ");
    if (!to.bytes.empty()) std::memcpy(to.bytes.data(), from.bytes.data(), to.bytes.size());
    ranks_[static_cast<std::size_t>(std::get<1>(key))]->finish(std::move(to));
    ranks_[static_cast<std::size_t>(std::get<0>(key))]->finish(std::move(from));
  }

  std::mutex mutex_;
  int silent_ = -1;
  std::map<Key, Meeting> meetings_;
  std::vector<std::unique_ptr<One>> ranks_;
};

}  // namespace emplace::exec
