#include "run/rank_peers.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/read_bytes.h"

namespace emplace {
namespace {

// While a step runs, what comes waits this long at most; that costs some hundredths of a core.
constexpr auto kNap = std::chrono::microseconds(20);

// Of this machine since it was started: who shares it shares the clock.
std::string boot_id() {
  try {
    return read_bytes("/proc/sys/kernel/random/boot_id");
  } catch (const Error&) {
    return {};
  }
}

std::string bytes_of(const exec::Notice& notice) {
  return dist::Writer()
      .number(static_cast<std::uint8_t>(notice.kind))
      .number(notice.round)
      .number(notice.step)
      .numbers(notice.numbers)
      .text(notice.text)
      .take();
}

exec::Notice notice_in(dist::Reader& body) {
  exec::Notice notice;
  const auto kind = body.number<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(exec::Notice::kLast)) {
    fail_input("a notice is of kind {}", kind);
  }
  notice.kind = static_cast<exec::Notice::Kind>(kind);
  notice.round = body.number<std::int64_t>();
  notice.step = body.number<std::int64_t>();
  notice.numbers = body.numbers<std::int64_t>();
  notice.text = body.text();
  body.end();
  return notice;
}

}  // namespace

RankPeers::RankPeers(std::unique_ptr<dist::Transport> transport, double lost_after) {
  dist::PostOptions options;
  options.lost_after = lost_after;
  options.everybody = true;
  options.nap = options.longest_nap = kNap;
  // Its thread may call before it is stored.
  const std::lock_guard lock(hearing_);
  Listener& listener = *this;
  post_ = std::make_unique<dist::Post>(std::move(transport), options, listener);
}

RankPeers::~RankPeers() = default;

std::string RankPeers::machine() const {
  return post_->host() + ' ' + boot_id();
}

void RankPeers::listen(exec::PeerEvents* events) {
  const std::lock_guard lock(hearing_);
  events_ = events;
  if (events_ == nullptr) return;
  for (auto& [from, notice] : std::exchange(kept_, {})) events_->heard(from, std::move(notice));
  for (const auto& [rank, why] : std::exchange(kept_losses_, {})) events_->lost(rank, why);
}

void RankPeers::tell(int to, exec::Notice notice) {
  post_->send(to, dist::Kind::kNotice, bytes_of(notice));
}

template <class Byte>
void RankPeers::move(std::span<Byte> buffer, std::function<void()> done,
                     const std::function<Ticket(std::span<Byte>)>& post) {
  const auto moving = std::make_shared<Moving>(Moving{0, std::move(done)});
  const std::lock_guard lock(mutex_);
  do {
    const std::size_t size = std::min(buffer.size(), dist::Transport::kMostBytes);
    ++moving->pieces;
    moving_[post(buffer.first(size))] = moving;
    buffer = buffer.subspan(size);
  } while (!buffer.empty());
}

void RankPeers::send(int to, int tag, std::span<const std::byte> buffer,
                     std::function<void()> done) {
  move<const std::byte>(buffer, std::move(done), [&](std::span<const std::byte> piece) {
    return post_->transport().send_from(to, tag, piece);
  });
}

void RankPeers::receive(int from, int tag, std::span<std::byte> buffer,
                        std::function<void()> done) {
  move<std::byte>(buffer, std::move(done), [&](std::span<std::byte> piece) {
    return post_->transport().receive_into(from, tag, piece);
  });
}

void RankPeers::forget() {
  const std::lock_guard hearing(hearing_);
  const std::lock_guard lock(mutex_);
  moving_.clear();
}

void RankPeers::leave(const std::string& why) {
  if (closed_) return;
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    tell(other, {.kind = exec::Notice::Kind::kBroken,
                 .text = rank() == 0 ? why : fmt::format("rank {}: {}", rank(), why)});
  }
  in_order_ = false;
  // Not every transport has sent it at once.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

void RankPeers::close() {
  if (closed_.exchange(true)) return;
  post_->close(in_order_);
}

void RankPeers::on_message(int from, dist::Kind kind, dist::Reader& body) {
  if (kind != dist::Kind::kNotice) {
    fail_input("rank {} sent a message of kind {}", from, static_cast<int>(kind));
  }
  exec::Notice notice = notice_in(body);
  const std::lock_guard lock(hearing_);
  if (notice.kind == exec::Notice::Kind::kBroken) in_order_ = false;
  if (events_ == nullptr) {
    kept_.emplace_back(from, std::move(notice));
  } else {
    events_->heard(from, std::move(notice));
  }
}

void RankPeers::on_lost(int rank, const std::string& why) {
  const std::lock_guard lock(hearing_);
  in_order_ = false;
  if (events_ == nullptr) {
    kept_losses_.emplace_back(rank, why);
  } else {
    events_->lost(rank, why);
  }
}

void RankPeers::on_tick() {
  const std::lock_guard hearing(hearing_);
  for (const Ticket ticket : post_->transport().take_done()) {
    std::shared_ptr<Moving> moving;
    {
      const std::lock_guard lock(mutex_);
      const auto found = moving_.find(ticket);
      if (found == moving_.end()) continue;
      moving = std::move(found->second);
      moving_.erase(found);
    }
    if (--moving->pieces == 0) moving->done();
  }
}

}  // namespace emplace
