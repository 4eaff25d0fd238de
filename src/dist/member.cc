#include "dist/member.h"

#include <utility>

#include "base/error.h"

namespace emplace::dist {
namespace {

// How long a task may take to end when it is told to leave, and how long the last word may take.
constexpr auto kTaskPatience = std::chrono::seconds(2);
constexpr auto kLastWord = std::chrono::seconds(5);

}  // namespace

Member::Member(std::unique_ptr<Transport> transport, const PostOptions& options,
               std::function<void()> abandoned)
    : abandoned_(std::move(abandoned)) {
  // Its thread may call before it is stored.
  const std::lock_guard lock(mutex_);
  Post::Listener& self = *this;
  post_ = std::make_unique<Post>(std::move(transport), options, self);
}

Member::~Member() = default;

void Member::serve(std::uint64_t fingerprint, const Work& work) {
  post_->send(0, Kind::kReady,
              Writer().number(fingerprint).text(post_->host()).text(post_->options().build).take());
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ || leaving_; });
    if (leaving_) break;
    Task task = *std::exchange(next_, std::nullopt);
    job_ = task.job;
    stopped_ = task.stopped;
    early_news_ = std::move(task.news);
    working_ = true;
    lock.unlock();
    do_task(task, work);
    lock.lock();
    working_ = false;
    stopped_ = leaving_;  // the task is over, not what is asked past rank 0
  }
  say_goodbye();
}

void Member::fail(const std::string& message) {
  post_->send(0, Kind::kFailed, Writer().text(message).take());
  wait();
}

void Member::wait() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return leaving_; });
  }
  say_goodbye();
}

void Member::do_task(const Task& task, const Work& work) {
  Writer reply;
  reply.number(task.job).number(task.number);
  try {
    Reader description(task.description);
    const std::string result = work(description, *this);
    hush();
    post_->send(0, Kind::kResult, reply.take() + result);
  } catch (const Error& error) {
    hush();
    reply.number(static_cast<std::uint8_t>(error.kind())).text(error.what());
    post_->send(0, Kind::kError, reply.take());
  } catch (...) {
    // Out of memory, say: others may be able to, and this rank counts as lost.
    hush();
    abandon();
  }
}

void Member::say_goodbye() {
  post_->send(0, Kind::kBye);
  bool in_order = false;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLastWord, [&] { return end_in_order_.has_value(); });
    in_order = end_in_order_.value_or(false);
  }
  post_->close(in_order);
}

void Member::note(int to, Topic topic, std::string_view body) {
  post_->send(to, Kind::kNotice, NoteListeners::bytes(topic, body));
}

void Member::on_notes(Topic topic, std::function<void(int, Reader&)> listener) {
  note_listeners_.set(topic, std::move(listener));
}

void Member::on_message(int from, Kind kind, Reader& body) {
  switch (kind) {
    case Kind::kTask: {
      Task task;
      task.job = body.number<std::uint64_t>();
      task.number = body.number<std::uint64_t>();
      task.description = body.text();
      const std::lock_guard lock(mutex_);
      next_ = std::move(task);
      changed_.notify_all();
      return;
    }
    case Kind::kStop: {
      const auto job = body.number<std::uint64_t>();
      const std::lock_guard lock(mutex_);
      if (working_ && job == job_) stopped_ = true;
      if (next_ && next_->job == job) next_->stopped = true;
      return;
    }
    case Kind::kNews: {
      const auto job = body.number<std::uint64_t>();
      on_news(job, body.text());
      return;
    }
    case Kind::kNotice: {
      try {
        note_listeners_.hear(from, body);
      } catch (const Error&) {
        // Who is lost is rank 0's to say.
        if (from == 0) throw;
      }
      return;
    }
    case Kind::kLeave: {
      const std::lock_guard lock(mutex_);
      leaving_ = stopped_ = true;
      leave_by_ = std::chrono::steady_clock::now() + kTaskPatience;
      changed_.notify_all();
      return;
    }
    case Kind::kEnd: {
      const bool in_order = body.flag();
      std::unique_lock lock(mutex_);
      end_in_order_ = in_order;
      changed_.notify_all();
      if (leaving_) return;
      lock.unlock();
      return abandon();  // the others have gone on without this rank
    }
    default:
      fail_input("rank 0 sent a message of kind {}", static_cast<int>(kind));
  }
}

void Member::on_news(std::uint64_t job, std::string news) {
  const std::lock_guard listening(listening_);
  {
    const std::lock_guard lock(mutex_);
    if (next_ && next_->job == job) {
      next_->news.push_back(std::move(news));
      return;
    }
    if (!working_ || job != job_) return;
    if (!news_listener_) {
      early_news_.push_back(std::move(news));
      return;
    }
  }
  Reader reader(news);
  news_listener_(reader);
}

void Member::on_lost(int, const std::string&) {
  abandon();
}

void Member::abandon() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_abandoned_, true)) return;
    leaving_ = stopped_ = true;
    end_in_order_ = false;
    changed_.notify_all();
  }
  abandoned_();
}

void Member::on_tick() {
  {
    std::unique_lock lock(mutex_);
    if (leaving_ && working_ && std::chrono::steady_clock::now() > leave_by_) {
      lock.unlock();
      abandon();
    }
  }
  const std::lock_guard listening(listening_);
  if (tick_listener_) tick_listener_();
}

void Member::tell(std::string_view news) {
  std::uint64_t job = 0;
  {
    const std::lock_guard lock(mutex_);
    job = job_;
  }
  post_->send(0, Kind::kNews, Writer().number(job).take() + std::string(news));
}

void Member::listen(std::function<void(Reader&)> on_news, std::function<void()> on_tick) {
  try {
    const std::lock_guard listening(listening_);
    news_listener_ = std::move(on_news);
    tick_listener_ = std::move(on_tick);
    if (!news_listener_) return;
    std::vector<std::string> early;
    {
      const std::lock_guard lock(mutex_);
      early.swap(early_news_);
    }
    for (const std::string& news : early) {
      Reader reader(news);
      news_listener_(reader);
    }
  } catch (const Error&) {
    abandon();  // as when it comes later
  }
}

}  // namespace emplace::dist
