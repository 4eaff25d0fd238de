// The side of the ranks that help rank 0 (dist/crew.h): does one task after the other until it is
// sent home. Keeps nothing that is not elsewhere.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/notes.h"
#include "dist/post.h"

namespace emplace::dist {

// What a task may say and hear while it is done.
class Line {
 public:
  virtual ~Line() = default;
  // Rank 0 wants the best so far.
  virtual const std::atomic<bool>& stopped() const = 0;
  virtual void tell(std::string_view news) = 0;
  // Called from another thread: what rank 0 tells, and every few milliseconds. Until `hush`, which
  // returns when no call is under way. What was told of the task before comes at once, in order,
  // from this thread.
  virtual void listen(std::function<void(Reader& news)> on_news, std::function<void()> on_tick) = 0;
  virtual void hush() = 0;
};

class Member final : public Notes, private Post::Listener, private Line {
 public:
  // `abandoned` is called, from another thread, when rank 0 is gone, has given up on this rank, or
  // when a task does not end though it was told to: whatever this process does is of no use then,
  // and it should end. Once; where it does not, `serve` returns soon.
  Member(std::unique_ptr<Transport> transport, const PostOptions& options,
         std::function<void()> abandoned);
  ~Member() override;

  int rank() const override { return post_->rank(); }
  int size() const override { return post_->size(); }
  void note(int to, Topic topic, std::string_view body) override;
  void on_notes(Topic topic, std::function<void(int from, Reader& body)> listener) override;

  // An Error that the task throws is its result.
  using Work = std::function<std::string(Reader& task, Line& line)>;
  // Until rank 0 sends everybody home. `fingerprint`: of what was read (`Crew::expect`).
  void serve(std::uint64_t fingerprint, const Work& work);
  // In place of that: the input could not be read.
  void fail(const std::string& message);
  // In place of both: there is nothing that this rank could do.
  void wait();
  // Of the task that is being done, and of all that comes after when everybody is sent home.
  const std::atomic<bool>& stopped() const override { return stopped_; }

 private:
  struct Task {
    std::uint64_t job = 0;
    std::uint64_t number = 0;
    std::string description;
    bool stopped = false;           // before it began
    std::vector<std::string> news;  // that came before
  };

  void on_message(int from, Kind kind, Reader& body) override;
  void on_lost(int rank, const std::string& why) override;
  void on_tick() override;
  void on_news(std::uint64_t job, std::string news);

  void tell(std::string_view news) override;
  void listen(std::function<void(Reader&)> on_news, std::function<void()> on_tick) override;
  void hush() override { listen({}, {}); }

  void do_task(const Task& task, const Work& work);
  void say_goodbye();
  void abandon();

  std::function<void()> abandoned_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Task> next_;
  std::uint64_t job_ = 0;  // of the task that is being done
  bool leaving_ = false;
  bool is_abandoned_ = false;
  std::optional<bool> end_in_order_;
  std::atomic<bool> stopped_{false};
  std::chrono::steady_clock::time_point leave_by_{};
  bool working_ = false;
  // Of the task that is being done, as long as it does not listen: who tells it takes it as told.
  std::vector<std::string> early_news_;
  std::mutex listening_;  // taken before the other
  std::function<void(Reader&)> news_listener_;
  std::function<void()> tick_listener_;
  NoteListeners note_listeners_;
  std::unique_ptr<Post> post_;  // whose thread ends first
};

}  // namespace emplace::dist
