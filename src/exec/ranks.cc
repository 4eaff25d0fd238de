#include "exec/ranks.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/check.h"
#include "base/error.h"

#include "exec/clock.h"

namespace emplace::exec {
namespace {

// Clocks of two machines drift apart by some 50 us in a second.
constexpr auto kAlignedFor = std::chrono::seconds(1);
constexpr int kTrips = 8;

// A channel's thread is where its tensors come from: two ranks would not know of each other.
void require_own_channels(const Cluster& cluster, const std::vector<int>& rank_of) {
  std::map<ChannelId, int> user;
  for (DeviceId from = 0; from < cluster.num_devices(); ++from) {
    for (DeviceId to = 0; to < cluster.num_devices(); ++to) {
      const Link* link = cluster.link(from, to);
      if (link == nullptr) continue;
      const int known = user.try_emplace(link->channel, rank_of[from]).first->second;
      if (known == rank_of[from]) continue;
      fail(ErrorKind::kUnsupported,
           "cluster '{}': channel '{}' is used by devices of ranks {} and {}, which cannot share "
           "one when steps are executed; expected channel: pair or out",
           cluster.name(), cluster.channel_name(link->channel), known, rank_of[from]);
    }
  }
}

}  // namespace

std::vector<int> ranks_of_devices(const Cluster& cluster, int ranks) {
  const DeviceId devices = cluster.num_devices();
  if (ranks < 1 || ranks > static_cast<int>(devices)) {
    fail(ErrorKind::kOption, "cluster '{}': its devices are shared by {} ranks; expected 1 to {}",
         cluster.name(), ranks, devices);
  }
  std::vector<int> rank_of;
  for (DeviceId device = 0; device < devices; ++device) {
    rank_of.push_back(static_cast<int>(static_cast<std::int64_t>(device) * ranks /
                                       static_cast<std::int64_t>(devices)));
  }
  return rank_of;
}

Nanoseconds clock_offset(std::span<const RoundTrip> trips) {
  EMPLACE_CHECK(!trips.empty());
  const RoundTrip& best =
      *std::min_element(trips.begin(), trips.end(), [](const RoundTrip& a, const RoundTrip& b) {
        return a.answered - a.asked < b.answered - b.asked;
      });
  return best.there - (best.asked + (best.answered - best.asked) / 2);
}

Ranks::Ranks(Peers& peers, std::shared_ptr<const Cluster> cluster)
    : peers_(peers), cluster_(std::move(cluster)), offsets_(static_cast<std::size_t>(size()), 0) {
  rank_of_ = ranks_of_devices(*cluster_, size());
  require_own_channels(*cluster_, rank_of_);
  for (DeviceId device = 0; device < cluster_->num_devices(); ++device) {
    if (here(device)) devices_here_.push_back(device);
  }
  peers_.listen(this);
}

Ranks::~Ranks() {
  peers_.listen(nullptr);
}

bool Ranks::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_.has_value();
}

std::string Ranks::name_of(int rank) const {
  std::string names;
  int count = 0;
  for (DeviceId device = 0; device < cluster_->num_devices(); ++device) {
    if (of(device) != rank) continue;
    names += fmt::format("{}'{}'", count++ == 0 ? "" : ", ", cluster_->device(device).name);
  }
  return fmt::format("rank {}, with device{} {},", rank, count == 1 ? "" : "s", names);
}

void Ranks::heard(int from, Notice notice) {
  switch (notice.kind) {
    case Notice::Kind::kPing:
      return tell(from, {.kind = Notice::Kind::kPong, .round = notice.round, .numbers = {now()}});
    case Notice::Kind::kBroken:
      return break_off(notice.text);
    case Notice::Kind::kPong:
    case Notice::Kind::kReport:
    case Notice::Kind::kDecision: {
      const std::lock_guard lock(mutex_);
      Words words{std::move(notice.numbers), std::move(notice.text)};
      if (notice.kind == Notice::Kind::kPong) {
        if (words.numbers.size() == 1) pongs_[notice.round] = {words.numbers[0], now()};
      } else if (notice.kind == Notice::Kind::kReport) {
        reports_[{notice.round, from}] = std::move(words);
      } else {
        decisions_[notice.round] = std::move(words);
      }
      return changed_.notify_all();
    }
    default:
      break;
  }
  const std::lock_guard lock(events_mutex_);
  if (const auto at = events_.find(notice.round); at != events_.end()) {
    at->second->heard(from, notice);
  }
}

void Ranks::lost(int rank, const std::string& why) {
  const std::string text = fmt::format("{} is lost: {}", name_of(rank), why);
  // Not everybody may have noticed.
  for (int other = 0; other < size(); ++other) {
    if (other == rank || other == this->rank()) continue;
    tell(other, {.kind = Notice::Kind::kBroken, .text = text});
  }
  break_off(text);
}

void Ranks::break_off(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (broken_) return;
    broken_ = why;
  }
  changed_.notify_all();
  const std::lock_guard lock(events_mutex_);
  for (const auto& [program, events] : events_) events->broken(why);
}

Ranks::Words Ranks::wait_for(std::unique_lock<std::mutex>& lock, Notice::Kind kind, int from,
                             std::int64_t round) {
  if (kind == Notice::Kind::kReport) {
    const std::pair key{round, from};
    changed_.wait(lock, [&] { return broken_ || reports_.contains(key); });
    if (broken_) throw RankLost{*broken_};
    return std::move(reports_.extract(key).mapped());
  }
  changed_.wait(lock, [&] { return broken_ || decisions_.contains(round); });
  // What was decided counts, even if somebody was lost right after.
  if (!decisions_.contains(round)) throw RankLost{*broken_};
  return std::move(decisions_.extract(round).mapped());
}

Ranks::Words Ranks::agree(Words report, const Decide& decide) {
  const std::int64_t round = ++round_;
  if (!first()) {
    tell(0, {.kind = Notice::Kind::kReport,
             .round = round,
             .numbers = std::move(report.numbers),
             .text = std::move(report.text)});
    std::unique_lock lock(mutex_);
    return wait_for(lock, Notice::Kind::kDecision, 0, round);
  }
  std::vector<Words> reports;
  reports.push_back(std::move(report));
  {
    std::unique_lock lock(mutex_);
    for (int rank = 1; rank < size(); ++rank) {
      reports.push_back(wait_for(lock, Notice::Kind::kReport, rank, round));
    }
  }
  std::vector<Words> decisions = decide(reports);
  EMPLACE_CHECK(decisions.size() == reports.size());
  for (int rank = 1; rank < size(); ++rank) {
    Words& words = decisions[static_cast<std::size_t>(rank)];
    tell(rank, {.kind = Notice::Kind::kDecision,
                .round = round,
                .numbers = std::move(words.numbers),
                .text = std::move(words.text)});
  }
  return std::move(decisions[0]);
}

void Ranks::share_error(const std::optional<Error>& mine) {
  Words report;
  if (mine) report = {{static_cast<std::int64_t>(mine->kind())}, mine->what()};
  const Words found = agree(std::move(report), [&](std::vector<Words>& reports) {
    const auto failed = std::find_if(reports.begin(), reports.end(),
                                     [](const Words& words) { return !words.numbers.empty(); });
    Words first = failed == reports.end() ? Words{} : *failed;
    if (failed != reports.end() && failed != reports.begin()) {
      first.text = fmt::format("rank {}: {}", failed - reports.begin(), first.text);
    }
    return std::vector<Words>(reports.size(), first);
  });
  if (!found.numbers.empty()) throw Error(static_cast<ErrorKind>(found.numbers[0]), found.text);
}

std::vector<std::string> Ranks::gather_lines(std::vector<std::string> lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  agree({{}, text}, [&](std::vector<Words>& reports) {
    std::set<std::string> all;
    for (const Words& words : reports) {
      for (std::size_t at = 0; at < words.text.size();) {
        const std::size_t end = words.text.find('\n', at);
        all.insert(words.text.substr(at, end - at));
        at = end + 1;
      }
    }
    lines.assign(all.begin(), all.end());
    return std::vector<Words>(reports.size());
  });
  return lines;
}

std::vector<DevicePlace> Ranks::places() {
  const Words all = agree({{}, peers_.machine()}, [&](std::vector<Words>& reports) {
    machines_.clear();
    for (const Words& words : reports) machines_.push_back(words.text);
    std::vector<Words> near(reports.size());
    for (std::size_t i = 0; i < near.size(); ++i) {
      for (const std::string& machine : machines_) {
        near[i].numbers.push_back(machine == machines_[i] ? 1 : 0);
      }
    }
    return near;
  });
  std::vector<DevicePlace> places;
  for (const int rank : rank_of_) {
    const bool near = all.numbers.at(static_cast<std::size_t>(rank)) != 0;
    places.push_back(rank == this->rank() ? DevicePlace::kHere
                     : near               ? DevicePlace::kNear
                                          : DevicePlace::kFar);
  }
  return places;
}

std::vector<RoundTrip> Ranks::ask_times(int rank) {
  std::vector<RoundTrip> trips;
  for (int i = 0; i < kTrips; ++i) {
    const std::int64_t number = ++pings_;
    const Nanoseconds asked = now();
    tell(rank, {.kind = Notice::Kind::kPing, .round = number});
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return broken_ || pongs_.contains(number); });
    if (broken_) throw RankLost{*broken_};
    const auto [there, answered] = pongs_.extract(number).mapped();
    trips.push_back({asked, there, answered});
  }
  return trips;
}

const std::vector<Nanoseconds>& Ranks::offsets() {
  if (aligned_ && Clock::now() - *aligned_ < kAlignedFor) return offsets_;
  slowest_ = 0;
  for (int rank = 1; rank < size(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    const std::vector<RoundTrip> trips = ask_times(rank);
    // Ranks of one machine read the same clock, better than any question could find out.
    const bool same = !machines_.empty() && machines_[i] == machines_[0];
    offsets_[i] = same ? 0 : clock_offset(trips);
    Nanoseconds quickest = trips[0].answered - trips[0].asked;
    for (const RoundTrip& trip : trips) quickest = std::min(quickest, trip.answered - trip.asked);
    slowest_ = std::max(slowest_, quickest);
  }
  aligned_ = Clock::now();
  return offsets_;
}

void Ranks::attach(std::int64_t program, Events* events) {
  const std::lock_guard lock(events_mutex_);
  events_[program] = events;
}

void Ranks::detach(std::int64_t program) {
  const std::lock_guard lock(events_mutex_);
  events_.erase(program);
}

}  // namespace emplace::exec
