#include "dist/post.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/prctl.h>

#include "base/check.h"

namespace emplace::dist {
namespace {

constexpr int kMostAtOnce = 64;
constexpr auto kBetweenDismissals = std::chrono::seconds(1);

std::string framed(Kind kind, std::string_view body) {
  Writer writer;
  writer.number(kMagic).number(kVersion).number(static_cast<std::uint16_t>(kind)).text(body);
  return writer.take();
}

// What is behind it is the body.
Kind read_header(Reader& reader) {
  if (reader.number<std::uint32_t>() != kMagic) fail_input("a message is none of emplace's");
  const auto version = reader.number<std::uint16_t>();
  if (version != kVersion) {
    fail_input("it speaks version {} of the language between ranks, not {}", version, kVersion);
  }
  const auto kind = reader.number<std::uint16_t>();
  if (kind > static_cast<std::uint16_t>(kLastKind)) fail_input("a message is of kind {}", kind);
  const auto length = reader.number<std::uint64_t>();
  if (length != reader.rest().size()) {
    fail_input("a message announces {} bytes and has {}", length, reader.rest().size());
  }
  return static_cast<Kind>(kind);
}

bool is_notice(std::string_view bytes) {
  try {
    Reader reader(bytes);
    return read_header(reader) == Kind::kNotice;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Post::Post(std::unique_ptr<Transport> transport, const PostOptions& options, Listener& listener)
    : transport_(std::move(transport)), options_(options), listener_(listener) {
  last_turn_ = Clock::now();
  for (int rank = 0; rank < size(); ++rank) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->heard = last_turn_;
  }
  thread_ = std::thread([this] { work(); });
}

Post::~Post() {
  close(false);
}

void Post::close(bool in_order) {
  closing_ = true;
  if (!thread_.joinable()) return;
  thread_.join();
  constexpr double kSeconds = 5;
  if (in_order) transport_->leave(kSeconds);
}

void Post::send(int to, Kind kind, std::string_view body) {
  EMPLACE_CHECK(talks_with(to) || (kind == Kind::kNotice && to != rank()));
  if (closing_ || !peer(to).present) return;
  peer(to).spoken = Clock::now().time_since_epoch().count();
  transport_->send(to, framed(kind, body));
}

bool Post::present(int rank) const {
  return peers_[static_cast<std::size_t>(rank)]->present;
}

void Post::work() {
  // Else the system adds some 50 us to every nap.
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  auto nap = options_.nap;
  while (!closing_) {
    nap = std::min(2 * nap, options_.longest_nap);
    // Signs of life must not wait until nothing comes any more.
    for (int i = 0; i < kMostAtOnce; ++i) {
      const auto envelope = transport_->receive();
      if (!envelope) break;
      nap = options_.nap;
      take(*envelope);
    }
    keep_alive(Clock::now());
    listener_.on_tick();
    std::this_thread::sleep_for(nap);
  }
}

void Post::take(const Envelope& envelope) {
  const int from = envelope.from;
  if (!talks_with(from) && !is_notice(envelope.bytes)) return;
  const Clock::time_point now = Clock::now();
  if (!peer(from).present) {
    // It was stopped, and does not know that the others have gone on without it.
    if (rank() == 0 && now - peer(from).dismissed > kBetweenDismissals) {
      peer(from).dismissed = now;
      transport_->send(from, framed(Kind::kEnd, Writer().flag(false).take()));
    }
    return;
  }
  peer(from).heard = now;
  try {
    Reader reader(envelope.bytes);
    const Kind kind = read_header(reader);
    if (kind != Kind::kPulse) listener_.on_message(from, kind, reader);
  } catch (const Error& error) {
    lose(from, error.what());
  }
}

void Post::keep_alive(Clock::time_point now) {
  // Whoever was stopped itself does not hold that against the others.
  const auto pause = now - last_turn_;
  last_turn_ = now;
  const bool was_stopped = pause > std::chrono::duration<double>(options_.lost_after / 2);
  for (int rank = 0; rank < size(); ++rank) {
    if (!talks_with(rank) || !peer(rank).present) continue;
    Peer& other = peer(rank);
    if (was_stopped) other.heard = now;
    const std::chrono::duration<double> silence = now - other.heard;
    if (silence.count() > options_.lost_after) {
      lose(rank, fmt::format("said nothing for {:.3g} s", options_.lost_after));
      continue;
    }
    const Clock::time_point spoken{Clock::duration(other.spoken)};
    if (now - spoken > std::chrono::duration<double>(options_.pulse_seconds)) {
      send(rank, Kind::kPulse);
    }
  }
}

void Post::lose(int rank, const std::string& why) {
  if (!peer(rank).present.exchange(false)) return;
  listener_.on_lost(rank, why);
}

}  // namespace emplace::dist
