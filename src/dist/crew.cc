// The post's thread and the one that called `run` share what is behind `mutex_`. The job's
// functions are called without it, since they may take their time and talk to the crew; `calling_`
// keeps them apart and the job alive.
#include "dist/crew.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"

namespace emplace::dist {
namespace {

constexpr auto kGlance = std::chrono::milliseconds(20);
// How long others may take to end what they do when they are told to.
constexpr auto kPatience = std::chrono::seconds(3);

}  // namespace

Crew::Crew(std::unique_ptr<Transport> transport, const PostOptions& options)
    : hands_(static_cast<std::size_t>(transport->size())),
      hosts_(static_cast<std::size_t>(transport->size())) {
  // Its thread may call before it is stored.
  const std::lock_guard lock(mutex_);
  Post::Listener& self = *this;
  post_ = std::make_unique<Post>(std::move(transport), options, self);
}

Crew::~Crew() {
  if (!leaving_) dismiss();
}

int Crew::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

std::vector<std::string> Crew::take_notes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

void Crew::expect(std::uint64_t fingerprint) {
  const std::lock_guard lock(mutex_);
  fingerprint_ = fingerprint;
  for (int rank = 1; rank < size(); ++rank) check_input(rank);
}

void Crew::check_input(int rank) {
  const Hand& other = hand(rank);
  if (!other.ready || failure_) return;
  const std::string_view build = post_->options().build;
  // Whose tasks, values and files may differ in what no length shows.
  if (other.build != build) {
    return fail(
        Error(ErrorKind::kInput, fmt::format("{} runs emplace {}; expected {}, as rank 0 does",
                                             name_of(rank), other.build, build)));
  }
  if (!fingerprint_ || other.fingerprint == *fingerprint_) return;
  fail(Error(ErrorKind::kInput,
             fmt::format(
                 "{} reads another input than rank 0, or is asked for something else: expected the "
                 "same command line, and the same files on every machine",
                 name_of(rank))));
}

void Crew::fail(const Error& error) {
  if (failure_) return;
  failure_ = error;
  if (when_failed_) when_failed_();
  changed_.notify_all();
}

void Crew::when_failed(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  when_failed_ = std::move(call);
  if (failure_ && when_failed_) when_failed_();
}

void Crew::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
}

void Crew::run(const Job& job) {
  std::unique_lock calling(calling_);
  std::unique_lock lock(mutex_);
  EMPLACE_CHECK(job_ == nullptr && !leaving_);
  EMPLACE_CHECK(!job.one_each || job.tasks == hands_.size());
  EMPLACE_CHECK(job.keepers.empty() || job.keepers.size() == job.tasks);
  job_ = &job;
  ++number_;
  stages_.assign(job.tasks, Stage::kWaiting);
  own_done_ = stopped_ = false;
  calling.unlock();
  const struct End {
    Crew& crew;
    std::unique_lock<std::mutex>& lock;
    ~End() {
      if (lock.owns_lock()) lock.unlock();
      // Others may be at it still, where this rank could not do its own.
      crew.stop_others();
      const std::lock_guard calling(crew.calling_);
      const std::lock_guard again(crew.mutex_);
      crew.job_ = nullptr;
      for (Hand& hand : crew.hands_) hand.task.reset();
    }
  } end{*this, lock};
  std::optional<std::chrono::steady_clock::time_point> stopped_at;
  // The first is always done here, so it is not handed out.
  if (stages_.empty() && job.more && job.more()) stages_.push_back(Stage::kWaiting);
  if (!stages_.empty()) stages_[0] = Stage::kTaken;
  bool begun = false;
  hand_out();
  while (!over()) {
    if (failure_) throw *failure_;
    const bool cancelled = job.cancelled != nullptr && job.cancelled->load();
    std::optional<std::size_t> task;
    if (!std::exchange(begun, true)) {
      task = 0;
    } else if (!cancelled) {
      task = take_task(0);
    }
    if (task) {
      do_task(job, *task, lock);
      own_done_ = true;
      continue;
    }
    if (cancelled || (job.one_each && own_done_)) {
      const auto now = std::chrono::steady_clock::now();
      if (!stopped_at) {
        stopped_at = now;
        lock.unlock();
        stop_others();
        lock.lock();
      }
      if (now - *stopped_at > kPatience) break;
    }
    changed_.wait_for(lock, kGlance);
  }
  if (failure_) throw *failure_;
}

// Also where there is nobody left to wait for.
bool Crew::over() {
  if (stopped_ || (job_->one_each && own_done_)) {
    return std::none_of(hands_.begin(), hands_.end(), [](const Hand& hand) { return hand.task; });
  }
  const bool all_done = std::all_of(stages_.begin(), stages_.end(),
                                    [](Stage stage) { return stage == Stage::kDone; });
  if (!all_done || !job_->more || !job_->more()) return all_done;
  stages_.push_back(Stage::kWaiting);
  return false;
}

std::optional<std::size_t> Crew::take_task(int rank) {
  const std::size_t first = job_->one_each ? static_cast<std::size_t>(rank) : 0;
  const std::size_t last = job_->one_each ? first + 1 : stages_.size();
  for (std::size_t task = first; task < last; ++task) {
    if (stages_[task] != Stage::kWaiting || !is_for(task, rank)) continue;
    stages_[task] = Stage::kTaken;
    return task;
  }
  if (!job_->more || !job_->more()) return std::nullopt;
  stages_.push_back(Stage::kTaken);
  return stages_.size() - 1;
}

bool Crew::is_for(std::size_t task, int rank) const {
  if (job_->keepers.empty()) return true;
  const int keeper = job_->keepers[task];
  return keeper == rank || (keeper != 0 && !post_->present(keeper));
}

void Crew::do_task(const Job& job, std::size_t task, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  try {
    const std::string result = job.here(task);
    const std::lock_guard calling(calling_);
    Reader reader(result);
    job.accept(task, reader);
  } catch (const Error& error) {
    const std::lock_guard calling(calling_);
    job.failed(task, error);
  }
  lock.lock();
  stages_[task] = Stage::kDone;
  hand_out();
}

void Crew::hand_out() {
  if (job_ == nullptr || stopped_ || failure_) return;
  for (int rank = 1; rank < size(); ++rank) {
    Hand& other = hand(rank);
    if (!other.ready || other.task || !post_->present(rank)) continue;
    if (job_->takes && !job_->takes(rank)) continue;
    const auto task = take_task(rank);
    if (!task) continue;
    other.task = task;
    const std::string description =
        job_->describe_to ? job_->describe_to(*task, rank) : job_->describe(*task);
    post_->send(rank, Kind::kTask,
                Writer().number(number_).number<std::uint64_t>(*task).text(description).take());
  }
}

void Crew::stop_others() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (int rank = 1; rank < size(); ++rank) {
    if (hand(rank).task) post_->send(rank, Kind::kStop, Writer().number(number_).take());
  }
}

void Crew::tell(std::string_view news) {
  const std::lock_guard lock(mutex_);
  const std::string body = Writer().number(number_).text(news).take();
  for (int rank = 1; rank < size(); ++rank) {
    if (hand(rank).task) post_->send(rank, Kind::kNews, body);
  }
}

void Crew::note(int to, Topic topic, std::string_view body) {
  post_->send(to, Kind::kNotice, NoteListeners::bytes(topic, body));
}

void Crew::on_notes(Topic topic, std::function<void(int, Reader&)> listener) {
  note_listeners_.set(topic, std::move(listener));
}

void Crew::on_message(int from, Kind kind, Reader& body) {
  switch (kind) {
    case Kind::kReady:
      return on_ready(from, body);
    case Kind::kFailed: {
      const std::lock_guard lock(mutex_);
      fail(Error(ErrorKind::kInput, fmt::format("rank {}: {}", from, body.text())));
      return;
    }
    case Kind::kNotice:
      return note_listeners_.hear(from, body);
    case Kind::kNews: {
      const auto number = body.number<std::uint64_t>();
      Reader news(body.rest());
      const std::lock_guard calling(calling_);
      // Both are changed by whoever holds this.
      if (job_ != nullptr && number == number_ && job_->on_news) job_->on_news(news);
      return;
    }
    case Kind::kResult:
    case Kind::kError:
      return on_result(from, kind, body);
    case Kind::kBye: {
      const std::lock_guard lock(mutex_);
      hand(from).gone = true;
      changed_.notify_all();
      if (leaving_ || !hand(from).task) return;
      fail_input("it has left in the middle of a task");  // which is another's then
    }
    default:
      fail_input("it sent a message of kind {}, which is rank 0's", static_cast<int>(kind));
  }
}

void Crew::on_ready(int from, Reader& body) {
  const auto fingerprint = body.number<std::uint64_t>();
  const std::string host = body.text();
  const std::string build = body.text();
  body.end();
  const std::lock_guard lock(mutex_);
  hosts_[static_cast<std::size_t>(from)] = host;
  hand(from).fingerprint = fingerprint;
  hand(from).build = build;
  hand(from).ready = true;
  check_input(from);
  hand_out();
}

void Crew::on_result(int from, Kind kind, Reader& body) {
  const auto number = body.number<std::uint64_t>();
  const auto task = static_cast<std::size_t>(body.number<std::uint64_t>());
  const std::lock_guard calling(calling_);
  {
    const std::lock_guard lock(mutex_);
    if (job_ == nullptr || number != number_) return;  // of a job that is over
    if (hand(from).task != task) fail_input("it has a result of a task that it was not given");
  }
  if (kind == Kind::kError) {
    const auto error_kind = body.number<std::uint8_t>();
    if (error_kind > static_cast<std::uint8_t>(ErrorKind::kSystem)) {
      fail_input("it sent an error of kind {}", error_kind);
    }
    const std::string text = body.text();
    body.end();
    job_->failed(task, Error(static_cast<ErrorKind>(error_kind), text));
  } else {
    Reader result(body.rest());
    job_->accept(task, result);
  }
  const std::lock_guard lock(mutex_);
  stages_[task] = Stage::kDone;
  hand(from).task.reset();
  hand_out();
  changed_.notify_all();
}

void Crew::on_lost(int rank, const std::string& why) {
  {
    const std::lock_guard calling(calling_);
    if (job_ != nullptr && job_->on_lost) job_->on_lost(rank);
  }
  const std::lock_guard lock(mutex_);
  if (leaving_ && hand(rank).gone) return;
  ++lost_;
  notes_.push_back(fmt::format("{} was lost: {}", name_of(rank), why));
  Hand& other = hand(rank);
  other.ready = false;
  other.gone = true;
  if (other.task && job_ != nullptr) {
    stages_[*other.task] = job_->one_each ? Stage::kDone : Stage::kWaiting;
  }
  other.task.reset();
  hand_out();
  changed_.notify_all();
}

void Crew::on_tick() {
  const std::lock_guard calling(calling_);
  if (job_ != nullptr && job_->on_tick) job_->on_tick();
}

std::string Crew::name_of(int rank) const {
  const std::string& host = hosts_[static_cast<std::size_t>(rank)];
  return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} on {}", rank, host);
}

bool Crew::dismiss() {
  bool in_order = false;
  {
    std::unique_lock lock(mutex_);
    leaving_ = true;
    for (int rank = 1; rank < size(); ++rank) post_->send(rank, Kind::kLeave);
    changed_.wait_for(lock, kPatience, [&] {
      return std::all_of(hands_.begin() + 1, hands_.end(),
                         [](const Hand& each) { return each.gone; });
    });
    in_order = lost_ == 0 && std::all_of(hands_.begin() + 1, hands_.end(),
                                         [](const Hand& each) { return each.gone; });
    for (int rank = 1; rank < size(); ++rank) {
      post_->send(rank, Kind::kEnd, Writer().flag(in_order).take());
    }
  }
  post_->close(in_order);
  return in_order;
}

}  // namespace emplace::dist
