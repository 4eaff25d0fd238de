// Rank 0's side of work that is shared: a job is a list of tasks, which ranks take as they come,
// this one among them. Nothing is where it could be lost: what a task needs is in its description,
// what it found meanwhile is told as news, and the task of a rank that is lost is given to another.
//
//   Crew crew(join_mpi("--ranks"), {});
//   crew.run({.tasks = 100,
//             .describe = [&](std::size_t task) { return Writer().number(seed + task).take(); },
//             .here = [&](std::size_t task) { return result_of(seed + task); },
//             .accept = [&](std::size_t task, Reader& result) { sums[task] = result.number<int>();
//             }, .failed = [&](std::size_t task, const Error& error) { throw error; }});
//   crew.dismiss();
//
// The other ranks have a Member (dist/member.h) and do there what `here` does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/error.h>

#include "dist/notes.h"
#include "dist/post.h"

namespace emplace::dist {

struct Job {
  std::size_t tasks = 0;
  // Task i is for rank i and for nobody else, as many as there are ranks: a search on each of them.
  // The job ends with this rank's: others are told to stop, and those that are lost are missing.
  bool one_each = false;
  // Who should do each task, as long as that rank is there; empty: anybody. The first task's is
  // rank 0.
  std::vector<int> keepers = {};
  // Whether another rank is given tasks at all, for now; empty: all are. Asked anew when somebody
  // is lost. Returns at once, without a word to the crew but whether a rank is present.
  std::function<bool(int rank)> takes = {};
  // Whether there is a further task for now, whose number follows those before. Asked by any thread
  // when all others are taken, and again after every result; the job ends when there is none, and
  // all that were taken are done. Returns at once, without a word to the crew.
  std::function<bool()> more = {};
  // What another rank is told, when it is told.
  std::function<std::string(std::size_t task)> describe;
  // In its place, where it depends on who does it.
  std::function<std::string(std::size_t task, int rank)> describe_to = {};
  // Does the task on this rank: in the thread that called `run`.
  std::function<std::string(std::size_t task)> here;
  // One call at a time, of this and the next two, from any thread. An Error says that the result
  // makes no sense: whoever sent it is lost.
  std::function<void(std::size_t task, Reader& result)> accept;
  std::function<void(std::size_t task, const Error& error)> failed;
  std::function<void(Reader& news)> on_news = {};
  // Every few milliseconds, from another thread.
  std::function<void()> on_tick = {};
  // A rank is lost, whether or not it had a task.
  std::function<void(int rank)> on_lost = {};
  const std::atomic<bool>* cancelled = nullptr;
};

class Crew final : public Notes, private Post::Listener {
 public:
  // From now on signs of life are given and expected.
  Crew(std::unique_ptr<Transport> transport, const PostOptions& options);
  // Dismisses those who are left.
  ~Crew() override;

  int rank() const override { return 0; }
  int size() const override { return post_->size(); }  // this rank included
  int lost() const;
  // Of those who were lost, for people; those that were not said yet.
  std::vector<std::string> take_notes();
  // Others that say something else when they are ready have read another input: an Error of `run`,
  // as is one of another build.
  void expect(std::uint64_t fingerprint);
  // Called once, perhaps from another thread, when a rank cannot take part (its input cannot be
  // read, or is another): what is done here meanwhile is in vain, and had better end.
  void when_failed(std::function<void()> call);
  // Throws the Error in question.
  void check() const;
  bool present(int rank) const { return post_->present(rank); }

  // The first task is done here; others as ranks are free. When it returns, every task has been
  // accepted or has failed, but for `one_each` and where it
  // was cancelled. Throws an Error when a rank could not read its input, and what `here` throws
  // that is none.
  void run(const Job& job);
  // To all who work on the job. From any thread, while it runs.
  void tell(std::string_view news);
  void note(int to, Topic topic, std::string_view body) override;
  void on_notes(Topic topic, std::function<void(int from, Reader& body)> listener) override;

  // Sends everybody home; returns whether all have left in order. Once.
  bool dismiss();

 private:
  enum class Stage { kWaiting, kTaken, kDone };
  struct Hand {  // another rank
    bool ready = false;
    bool gone = false;  // has said goodbye
    std::uint64_t fingerprint = 0;
    std::string build = {};
    std::optional<std::size_t> task = std::nullopt;
  };

  void on_message(int from, Kind kind, Reader& body) override;
  void on_lost(int rank, const std::string& why) override;
  void on_tick() override;

  void on_ready(int from, Reader& body);
  void on_result(int from, Kind kind, Reader& body);
  void fail(const Error& error);  // with the lock, as the next three
  void check_input(int rank);
  void hand_out();
  std::optional<std::size_t> take_task(int rank);
  bool is_for(std::size_t task, int rank) const;
  void stop_others();
  void do_task(const Job& job, std::size_t task, std::unique_lock<std::mutex>& lock);
  bool over();  // with the lock
  Hand& hand(int rank) { return hands_[static_cast<std::size_t>(rank)]; }
  std::string name_of(int rank) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Hand> hands_;         // by rank
  std::vector<std::string> hosts_;  // by rank, once they are ready
  std::vector<std::string> notes_;
  int lost_ = 0;
  bool leaving_ = false;
  std::optional<std::uint64_t> fingerprint_;
  std::optional<Error> failure_;  // a rank that could not begin
  const Job* job_ = nullptr;
  std::uint64_t number_ = 0;  // of the job
  std::vector<Stage> stages_;
  std::function<void()> when_failed_;
  bool own_done_ = false;
  bool stopped_ = false;
  // Held while a job's functions run, and to end it; taken before the other.
  std::mutex calling_;
  NoteListeners note_listeners_;
  std::unique_ptr<Post> post_;  // whose thread ends first
};

}  // namespace emplace::dist
