#include "exec/rank_parts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <thread>

#include "base/check.h"
#include "base/error.h"

#include "cluster/runs_on.h"

#include "exec/clock.h"

namespace emplace::exec {
namespace {

// From the decision to the start of a step, beside a message's way: until devices' threads are
// awake.
constexpr Nanoseconds kWakes = 300'000;

// Keeps a buffer of a transfer with a rank that is lost, which is never done.
void abandon(Tensor buffer) {
  static std::mutex mutex;
  static auto* const all = new std::vector<Tensor>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(buffer));
}

Ranks::Words words_of(const std::optional<Failure>& failure, bool own) {
  if (!failure) return {{0, 0}, {}};
  return {{1 + static_cast<std::int64_t>(failure->kind), own ? 1 : 0}, failure->text};
}

std::optional<Failure> failure_in(const Ranks::Words& words) {
  if (words.numbers.at(0) == 0) return std::nullopt;
  return Failure{static_cast<Failure::Kind>(words.numbers[0] - 1), words.text};
}

// The failure that others may only have heard of; one that is more than the end of waiting first.
std::optional<Failure> first_failure(const std::vector<Ranks::Words>& reports) {
  const auto weight = [](const Ranks::Words& words) {
    if (words.numbers.at(0) == 0) return 3;
    const bool cancelled = failure_in(words)->kind == Failure::Kind::kCancelled;
    return words.numbers.at(1) == 0 ? 2 : cancelled ? 1 : 0;
  };
  const auto first =
      std::min_element(reports.begin(), reports.end(),
                       [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
  return failure_in(*first);
}

// Reads what report_of has written.
class Numbers64 {
 public:
  explicit Numbers64(const std::vector<std::int64_t>& numbers) : numbers_(numbers) {}
  std::int64_t next() { return numbers_.at(at_++); }

 private:
  const std::vector<std::int64_t>& numbers_;
  std::size_t at_ = 0;
};

std::span<std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

}  // namespace

RankParts::RankParts(StepHost& host, Machine& machine, Ranks& ranks, std::int64_t program)
    : host_(host),
      machine_(machine),
      ranks_(ranks),
      program_(program),
      tags_(host.plan().transfers.size(), 0),
      arrives_(host.plan().copies.size(), 0),
      offsets_(static_cast<std::size_t>(ranks.size()), 0),
      posted_(host.plan().transfers.size(), 0),
      sent_(host.plan().transfers.size()),
      outgoing_(host.plan().transfers.size()),
      arrivals_(host.plan().transfers.size(), 0) {
  const StepPlan& plan = host_.plan();
  number_tags();
  for (OpId op = 0; op < host_.graph().num_ops(); ++op) {
    if (!here(plan.ops[op].device)) continue;
    std::set<int> others;
    for (const OpId follower : plan.ops[op].followers) {
      others.insert(ranks_.of(plan.ops[follower].device));
    }
    others.erase(ranks_.rank());
    if (!others.empty()) follower_ranks_[op].assign(others.begin(), others.end());
  }
  ranks_.attach(program_, this);
}

RankParts::~RankParts() {
  ranks_.detach(program_);
  ranks_.peers().forget();
  while (waiting_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  if (pending_ == 0) return;
  for (const TransferId transfer : receives_) {
    abandon(host_.values()[host_.plan().transfers[transfer].to]);
  }
  for (Tensor& tensor : outgoing_) abandon(std::move(tensor));
  auto* const zeros = new std::vector<std::byte>(std::move(zeros_));
  static_cast<void>(zeros);
}

// Every rank numbers the transfers of all.
void RankParts::number_tags() {
  const StepPlan& plan = host_.plan();
  std::map<std::pair<int, int>, int> next;
  for (TransferId i = 0; i < plan.transfers.size(); ++i) {
    const int from = rank_of(plan.transfers[i].from);
    const int to = rank_of(plan.transfers[i].to);
    if (from == to) continue;
    tags_[i] = next[{from, to}]++;
    if (tags_[i] >= Peers::kMostTags) {
      fail(ErrorKind::kUnsupported,
           "rank {} would send rank {} more than {} tensors in a step; expected a placement that "
           "cuts fewer",
           from, to, Peers::kMostTags);
    }
    for (const CopyId copy : {plan.transfers[i].from, plan.transfers[i].to}) {
      const DeviceId device = plan.copies[copy].device;
      if (!is_gpu(machine_.cluster().device(device))) continue;
      fail(ErrorKind::kUnsupported,
           "device '{}': tensors of a GPU cannot be sent to another rank, nor come from one; "
           "expected devices that are cores",
           machine_.cluster().device(device).name);
    }
    if (from == ranks_.rank()) sends_.push_back(i);
    if (to != ranks_.rank()) continue;
    receives_.push_back(i);
    arrives_[plan.transfers[i].to] = 1;
  }
}

const Link& RankParts::link_of(TransferId transfer) const {
  const PlannedTransfer& planned = host_.plan().transfers[transfer];
  const auto& copies = host_.plan().copies;
  return *machine_.cluster().link(copies[planned.from].device, copies[planned.to].device);
}

std::size_t RankParts::size_of(TransferId transfer) const {
  const TensorId tensor = host_.plan().copies[host_.plan().transfers[transfer].to].tensor;
  const auto elements = static_cast<std::size_t>(count_elements(host_.graph().shape(tensor)));
  return elements * c10::elementSize(host_.type_of(tensor));
}

void RankParts::prepare() {
  for (const TransferId transfer : receives_) {
    const CopyId copy = host_.plan().transfers[transfer].to;
    const TensorCopy& to = host_.plan().copies[copy];
    host_.guard_transfer(transfer, [&] {
      const MemoryAccounts::For account(to.device);
      const auto shape = host_.graph().shape(to.tensor);
      host_.values()[copy] =
          torch::empty(Integers(shape.begin(), shape.end()), host_.type_of(to.tensor));
    });
  }
}

std::uint64_t RankParts::fingerprint() const {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto mix = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ 0xff) * 1099511628211ULL;
  };
  const Graph& graph = host_.graph();
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    mix(graph.op_name(op));
    mix(graph.type(op));
    mix(machine_.cluster().device(host_.plan().ops[op].device).name);
  }
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    hash = (hash ^ static_cast<std::uint64_t>(graph.memory_bytes(tensor))) * 1099511628211ULL;
  }
  return hash;
}

void RankParts::join(const std::optional<Failure>& failure, std::vector<std::string>& slow_types) {
  Ranks::Words mine = words_of(failure, true);
  mine.numbers.push_back(std::bit_cast<std::int64_t>(fingerprint()));
  const Ranks::Words loaded = ranks_.agree(mine, [&](std::vector<Ranks::Words>& reports) {
    Ranks::Words all = words_of(first_failure(reports), false);
    all.numbers.push_back(0);
    for (std::size_t i = 0; i < reports.size(); ++i) {
      const bool same = reports[i].numbers.at(2) == reports[0].numbers.at(2);
      if (!same && all.numbers[2] == 0) all.numbers[2] = static_cast<std::int64_t>(i);
    }
    return std::vector<Ranks::Words>(reports.size(), all);
  });
  if (const std::int64_t other = loaded.numbers.at(2); other != 0) {
    fail_input("rank {} has read another model, placement or cluster than rank 0", other);
  }
  if (const auto found = failure_in(loaded)) host_.give_up(*found);
  slow_types = ranks_.gather_lines(std::move(slow_types));
}

void RankParts::post_receive(TransferId transfer) {
  const PlannedTransfer& planned = host_.plan().transfers[transfer];
  pending_.fetch_add(1);
  ranks_.peers().receive(rank_of(planned.from), tags_[transfer],
                         bytes_of(host_.values()[planned.to]), [this, transfer] {
                           came(transfer);
                           pending_.fetch_sub(1);
                           moved_.notify();
                         });
}

void RankParts::post_send(TransferId transfer, std::span<const std::byte> bytes) {
  posted_[transfer] = 1;
  pending_.fetch_add(1);
  ranks_.peers().send(rank_of(host_.plan().transfers[transfer].to), tags_[transfer], bytes,
                      [this, transfer] {
                        sent_[transfer] = true;
                        pending_.fetch_sub(1);
                        moved_.notify();
                      });
}

std::optional<Nanoseconds> RankParts::begin(const std::optional<Failure>& failure) {
  std::fill(posted_.begin(), posted_.end(), std::uint8_t{0});
  std::fill(arrivals_.begin(), arrivals_.end(), Nanoseconds{0});
  for (auto& sent : sent_) sent = false;
  failed_here_ = false;
  {
    const std::lock_guard lock(incoming_mutex_);
    incoming_.clear();
  }
  step_ = host_.step_number();
  in_step_ = true;
  for (const TransferId transfer : receives_) post_receive(transfer);
  try {
    const auto go = ranks_.agree(words_of(failure, true), [&](std::vector<Ranks::Words>& reports) {
      Ranks::Words all = words_of(first_failure(reports), false);
      const std::vector<Nanoseconds>& offsets = ranks_.offsets();
      all.numbers.push_back(now() + kWakes + ranks_.slowest_round_trip());
      all.numbers.insert(all.numbers.end(), offsets.begin(), offsets.end());
      return std::vector<Ranks::Words>(reports.size(), all);
    });
    for (std::size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = go.numbers.at(3 + i);
    const auto found = failure_in(go);
    if (!found) return go.numbers.at(2) + offsets_[static_cast<std::size_t>(ranks_.rank())];
    host_.give_up(*found);
  } catch (const RankLost& lost) {
    host_.give_up({Failure::Kind::kRank, lost.text});
  }
  return std::nullopt;
}

void RankParts::carry(TransferId transfer, Interval& time) {
  const PlannedTransfer& planned = host_.plan().transfers[transfer];
  const Link& link = link_of(transfer);
  const Tensor whole = host_.values()[planned.from].contiguous();
  const auto bytes = static_cast<Bytes>(whole.nbytes());
  EMPLACE_CHECK(static_cast<std::size_t>(bytes) == size_of(transfer));
  Nanoseconds due = 0;
  if (link.throttled) {
    due = time.start + transfer_time(link, bytes);
    const auto mine = static_cast<std::size_t>(ranks_.rank());
    const auto to = static_cast<std::size_t>(rank_of(planned.to));
    ranks_.tell(rank_of(planned.to), {.kind = Notice::Kind::kDue,
                                      .round = program_,
                                      .step = step_,
                                      .numbers = {transfer, due - offsets_[mine] + offsets_[to]}});
  }
  outgoing_[transfer] = whole;
  post_send(transfer, bytes_of(whole));
  moved_.wait(machine_.patience(), [&] { return sent_[transfer] || host_.stopped(); });
  if (link.throttled) wait_until(due, [&] { return host_.stopped(); });
  time.end = now();
  if (sent_[transfer]) outgoing_[transfer] = Tensor();
}

void RankParts::came(TransferId transfer) {
  if (!link_of(transfer).throttled) return hand_over(transfer);
  came_or_due(transfer, [](Incoming& incoming) { incoming.came = true; });
}

// A tensor that is here waits for its time on the channel's thread.
void RankParts::came_or_due(TransferId transfer, const std::function<void(Incoming&)>& change) {
  Nanoseconds due = 0;
  {
    const std::lock_guard lock(incoming_mutex_);
    Incoming& incoming = incoming_[transfer];
    change(incoming);
    if (!incoming.came || !incoming.due) return;
    due = *incoming.due;
  }
  waiting_.fetch_add(1);
  machine_.channel(host_.plan().transfers[transfer].channel).post([this, transfer, due] {
    if (!host_.stopped()) {
      wait_until(due, [&] { return host_.stopped(); });
      hand_over(transfer);
    }
    moved_.notify();
    waiting_.fetch_sub(1, std::memory_order_release);
  });
}

void RankParts::hand_over(TransferId transfer) {
  arrivals_[transfer] = now();
  if (host_.stopped()) return;
  const torch::NoGradGuard no_gradients;
  host_.guard_transfer(transfer, [&] { host_.arrived(host_.plan().transfers[transfer].to); });
}

void RankParts::finished(OpId op) {
  const auto others = follower_ranks_.find(op);
  if (others == follower_ranks_.end()) return;
  for (const int rank : others->second) {
    ranks_.tell(rank, {.kind = Notice::Kind::kFollowed,
                       .round = program_,
                       .step = step_,
                       .numbers = {static_cast<std::int64_t>(op)}});
  }
}

void RankParts::failed(const Failure& failure) {
  moved_.notify();
  if (!in_step_ || failed_here_.exchange(true)) return;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    ranks_.tell(rank, {.kind = Notice::Kind::kFailed,
                       .round = program_,
                       .step = step_,
                       .numbers = {static_cast<std::int64_t>(failure.kind)},
                       .text = failure.text});
  }
}

void RankParts::heard(int from, const Notice& notice) {
  // Of a step that is over: the failure of one rank is heard of by two ways.
  if (!in_step_ || notice.step != step_ || notice.numbers.empty()) return;
  const std::int64_t number = notice.numbers[0];
  const auto limit = [&]() -> std::size_t {
    if (notice.kind == Notice::Kind::kFailed) return static_cast<int>(Failure::Kind::kRank) + 1;
    if (notice.kind == Notice::Kind::kFollowed) return host_.plan().ops.size();
    return host_.plan().transfers.size();
  };
  if (number < 0 || static_cast<std::size_t>(number) >= limit()) {
    return broken(fmt::format("rank {} sent a number that makes no sense", from));
  }
  const torch::NoGradGuard no_gradients;
  if (notice.kind == Notice::Kind::kFailed) {
    host_.give_up({static_cast<Failure::Kind>(number), notice.text});
    moved_.notify();
  } else if (notice.kind == Notice::Kind::kFollowed) {
    host_.preceded(static_cast<OpId>(number));
  } else if (notice.kind == Notice::Kind::kDue && notice.numbers.size() == 2) {
    came_or_due(static_cast<TransferId>(number),
                [&](Incoming& incoming) { incoming.due = notice.numbers[1]; });
  }
}

void RankParts::broken(const std::string& why) {
  host_.give_up({Failure::Kind::kRank, why});
  moved_.notify();
}

void RankParts::send_what_is_missing() {
  std::vector<TransferId> missing;
  std::size_t most = 0;
  for (const TransferId transfer : sends_) {
    if (posted_[transfer] != 0) continue;
    missing.push_back(transfer);
    most = std::max(most, size_of(transfer));
  }
  zeros_.resize(std::max(zeros_.size(), most));
  for (const TransferId transfer : missing) {
    post_send(transfer, {zeros_.data(), size_of(transfer)});
  }
}

void RankParts::wait_for_transfers() {
  if (host_.stopped()) send_what_is_missing();
  moved_.wait(machine_.patience(), [&] { return pending_ == 0 || ranks_.broken(); });
  if (pending_ == 0) std::fill(outgoing_.begin(), outgoing_.end(), Tensor());
}

StepParts RankParts::end(StepParts parts) {
  wait_for_transfers();
  in_step_ = false;
  if (!parts.failure) {
    for (const TransferId transfer : receives_) {
      parts.transfers[transfer] = {arrivals_[transfer], arrivals_[transfer]};
    }
  }
  try {
    const Ranks::Words over = ranks_.agree(
        report_of(parts),
        [&](std::vector<Ranks::Words>& reports) { return decide_end(reports, parts); });
    parts.failure = failure_in(over);
    if (parts.failure) {
      host_.give_up(*parts.failure);
    } else if (!ranks_.first()) {
      const auto mine = static_cast<std::size_t>(ranks_.rank());
      parts.ended = over.numbers.at(2) + offsets_[mine];
      parts.losses.clear();
      for (std::size_t i = 3; i < over.numbers.size(); ++i) {
        parts.losses.emplace_back(std::bit_cast<double>(over.numbers[i]));
      }
    }
  } catch (const RankLost& lost) {
    parts.failure = {Failure::Kind::kRank, lost.text};
    host_.give_up(*parts.failure);
  }
  return parts;
}

Ranks::Words RankParts::report_of(const StepParts& parts) const {
  Ranks::Words words = words_of(parts.failure, failed_here_);
  const auto say = [&](std::initializer_list<std::int64_t> numbers) {
    words.numbers.insert(words.numbers.end(), numbers);
  };
  if (parts.failure) return words;
  const StepPlan& plan = host_.plan();
  say({parts.ended});
  for (OpId op = 0; op < host_.graph().num_ops(); ++op) {
    if (!here(plan.ops[op].device)) continue;
    say({parts.ops[op].start, parts.ops[op].end, parts.temporary[op]});
  }
  for (TransferId i = 0; i < plan.transfers.size(); ++i) {
    const bool ours = rank_of(plan.transfers[i].from) == ranks_.rank() ||
                      rank_of(plan.transfers[i].to) == ranks_.rank();
    if (ours) say({parts.transfers[i].start, parts.transfers[i].end});
  }
  for (const DeviceId device : devices()) {
    say({parts.memory[device].peak, parts.memory[device].cached});
  }
  for (const auto& loss : parts.losses) {
    say({loss ? 1 : 0, std::bit_cast<std::int64_t>(loss.value_or(0))});
  }
  return words;
}

void RankParts::add_report(int rank, const Ranks::Words& words, StepParts& parts) const {
  const StepPlan& plan = host_.plan();
  const Nanoseconds ahead = offsets_[static_cast<std::size_t>(rank)];
  const auto our_time = [&](Nanoseconds time) { return time == 0 ? 0 : time - ahead; };
  Numbers64 numbers(words.numbers);
  numbers.next();
  numbers.next();
  parts.ended = std::max(parts.ended, our_time(numbers.next()));
  for (OpId op = 0; op < host_.graph().num_ops(); ++op) {
    if (ranks_.of(plan.ops[op].device) != rank) continue;
    parts.ops[op].start = our_time(numbers.next());
    parts.ops[op].end = our_time(numbers.next());
    parts.temporary[op] = numbers.next();
  }
  for (TransferId i = 0; i < plan.transfers.size(); ++i) {
    const bool from = rank_of(plan.transfers[i].from) == rank;
    const bool to = rank_of(plan.transfers[i].to) == rank;
    if (!from && !to) continue;
    const Nanoseconds start = our_time(numbers.next());
    const Nanoseconds end = our_time(numbers.next());
    if (from) parts.transfers[i].start = start;
    if (to) parts.transfers[i].end = end;
  }
  for (DeviceId device = 0; device < machine_.cluster().num_devices(); ++device) {
    if (ranks_.of(device) != rank) continue;
    parts.memory[device].peak = numbers.next();
    parts.memory[device].cached = numbers.next();
  }
  for (auto& loss : parts.losses) {
    const bool known = numbers.next() != 0;
    const auto value = std::bit_cast<double>(numbers.next());
    if (known) loss = value;
  }
}

std::vector<Ranks::Words> RankParts::decide_end(const std::vector<Ranks::Words>& reports,
                                                StepParts& parts) const {
  Ranks::Words all = words_of(first_failure(reports), false);
  if (!failure_in(all)) {
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      add_report(rank, reports[static_cast<std::size_t>(rank)], parts);
    }
    // By two clocks, a short one may seem to end before it began.
    for (Interval& time : parts.transfers) time.end = std::max(time.start, time.end);
    all.numbers.push_back(parts.ended);
    for (const auto& loss : parts.losses) {
      if (loss) all.numbers.push_back(std::bit_cast<std::int64_t>(*loss));
    }
  }
  return std::vector<Ranks::Words>(reports.size(), all);
}

}  // namespace emplace::exec
