// Every system call of writing a file fails in turn, in every way: afterwards the old file is there
// or the new one, whole, nothing lies beside it, and the message says what happened.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#include "io/append_file.h"
#include "io/failing_calls.h"
#include "io/file.h"
#include "io/file_calls.h"
#include "io/file_lock.h"
#include "io/training_curves.h"
#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;

class WriteFaults : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.path(name); }

  void expect_old_or_new(const std::string& name, const std::string& old_content,
                         const std::string& new_content) {
    with_every_fault([&](int n, Fault fault, bool from_then_on) {
      folder_.write(name, old_content);
      std::string problem;
      bool reached = false;
      {
        FailingCalls calls(n, fault, from_then_on);
        problem = error_text([&] { write_file(file(name), new_content); });
        reached = calls.reached();
      }
      const std::string found = read_file(file(name));
      if (!reached || is_survivable(fault)) {
        EXPECT_EQ(problem, "");
        EXPECT_TRUE(found == new_content) << found.substr(0, 20);
      } else {
        EXPECT_THAT(problem, HasSubstr(file(name) + ": cannot be written: "));
        EXPECT_THAT(problem, HasSubstr(fault == Fault::kNoSpace ? "No space left on device"
                                                                : "Input/output error"));
        EXPECT_TRUE(found == old_content) << found.substr(0, 20);
      }
      EXPECT_EQ(folder_.num_files(), 1U);
      return reached;
    });
  }

  testing::TemporaryFolder folder_;
};

TEST_F(WriteFaults, a_file_is_the_old_one_or_the_new_one) {
  expect_old_or_new("plain.json", "old", std::string(300'000, 'n'));
}

TEST_F(WriteFaults, a_packed_file_is_too) {
  // The file's bytes are what the test writes, so both are compared unpacked.
  expect_old_or_new("packed.gz", "old", "new");
}

TEST_F(WriteFaults, a_new_file_is_there_whole_or_not_at_all) {
  with_every_fault([&](int n, Fault fault, bool from_then_on) {
    std::string problem;
    bool reached = false;
    {
      FailingCalls calls(n, fault, from_then_on);
      problem = error_text([&] { write_file(file("new"), "content"); });
      reached = calls.reached();
    }
    EXPECT_EQ(folder_.has("new"), problem.empty());
    if (folder_.has("new")) {
      EXPECT_EQ(folder_.read("new"), "content");
      std::filesystem::remove(file("new"));
    }
    EXPECT_EQ(folder_.num_files(), 0U);
    return reached;
  });
}

TEST_F(WriteFaults, a_check_whether_a_file_can_be_written_leaves_nothing) {
  with_every_fault([&](int n, Fault fault, bool from_then_on) {
    bool reached = false;
    {
      FailingCalls calls(n, fault, from_then_on);
      error_text([&] { require_writable(file("output")); });
      reached = calls.reached();
    }
    EXPECT_EQ(folder_.num_files(), 0U);
    return reached;
  });
}

// Curves grow: what was there stays, and a row is whole where no error was told.
TEST_F(WriteFaults, curves_have_every_row_that_was_not_refused) {
  with_every_fault([&](int n, Fault fault, bool from_then_on) {
    const std::string folder = file("curves");
    std::size_t rows = 0;
    bool reached = false;
    {
      FailingCalls calls(n, fault, from_then_on);
      std::optional<TrainingCurves> curves;
      const std::string refused =
          error_text([&] { curves.emplace(folder, CurveFolder::Begin::kAnew); });
      EXPECT_EQ(curves.has_value(), refused.empty());
      for (std::int64_t round = 0; curves && round < 3; ++round) {
        TrainingPoint point;
        point.round = round;
        const std::string problem = error_text([&] { curves->add(point); });
        if (!problem.empty()) {
          EXPECT_THAT(problem, HasSubstr("curves"));
          break;
        }
        ++rows;
      }
      reached = calls.reached();
      if (is_survivable(fault)) {
        EXPECT_EQ(rows, 3U);
      }
    }
    if (rows > 0) {
      const std::string table = read_file(folder + "/curves.csv");
      EXPECT_GE(static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n')), rows + 1);
    }
    std::filesystem::remove_all(folder);
    return reached;
  });
}

TEST_F(WriteFaults, who_may_read_a_file_stays_as_it_was) {
  folder_.write("private", "old");
  namespace fs = std::filesystem;
  fs::permissions(file("private"), fs::perms::owner_read | fs::perms::owner_write);
  write_file(file("private"), "new");
  EXPECT_EQ(fs::status(file("private")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(folder_.read("private"), "new");
}

TEST_F(WriteFaults, what_a_killed_process_left_is_taken_away_and_what_a_living_one_writes_is_not) {
  namespace fs = std::filesystem;
  constexpr int kNobody = 999'999'999;  // above what Linux gives out
  const std::string dead = folder_.write("out.tmp-" + std::to_string(kNobody) + "-0", "half");
  const std::string fresh = folder_.write("out.tmp-" + std::to_string(kNobody) + "-1", "half");
  const std::string ours = folder_.write("out.tmp-" + std::to_string(::getpid()) + "-9", "half");
  const std::string other = folder_.write("out.tmp-notes", "text");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const std::string& path : {dead, ours, other}) fs::last_write_time(path, long_ago);
  require_writable(file("out"));
  EXPECT_FALSE(fs::exists(dead));
  for (const std::string& path : {fresh, ours, other}) EXPECT_TRUE(fs::exists(path)) << path;
}

TEST_F(WriteFaults, a_lock_is_one_run_s_at_a_time) {
  {
    const FileLock lock(file("checkpoint"));
    EXPECT_THAT(error_text([&] { FileLock again(file("checkpoint")); }),
                HasSubstr("checkpoint: another run is using it"));
    const FileLock other(file("another"));
  }
  const FileLock later(file("checkpoint"));
  EXPECT_EQ(folder_.num_files(), 1U);
}

// Sees how files are opened; locks are what the test says they are.
class WatchedCalls final : public FileCalls {
 public:
  WatchedCalls() : before_(replace_file_calls(this)) {}
  ~WatchedCalls() override { replace_file_calls(before_); }

  int open(const char* path, int flags, mode_t mode) override {
    if (std::exchange(interrupts_, false)) {
      errno = EINTR;
      return -1;
    }
    const int descriptor = FileCalls::open(path, flags, mode);
    struct stat status {};
    if (descriptor >= 0 && ::fstat(descriptor, &status) == 0) {
      opened_with_ = status.st_mode & 0777;
    }
    return descriptor;
  }
  int lock(int descriptor, int operation) override {
    if (has_locks_) return FileCalls::lock(descriptor, operation);
    errno = ENOLCK;
    return -1;
  }

  bool interrupts_ = false;  // the next call
  bool has_locks_ = true;
  mode_t opened_with_ = 0;

 private:
  FileCalls* before_;
};

TEST_F(WriteFaults, nobody_else_may_read_what_replaces_a_file_before_it_has_its_mode) {
  namespace fs = std::filesystem;
  folder_.write("private", "old");
  fs::permissions(file("private"), fs::perms::owner_read | fs::perms::owner_write);
  WatchedCalls calls;
  write_file(file("private"), "new");
  EXPECT_EQ(calls.opened_with_, 0600U);
  folder_.write("shared", "old");
  fs::permissions(file("shared"), static_cast<fs::perms>(0664));
  write_file(file("shared"), "new");
  EXPECT_EQ(calls.opened_with_, 0600U);
  EXPECT_EQ(fs::status(file("shared")).permissions(), static_cast<fs::perms>(0664));
}

TEST_F(WriteFaults, a_lock_is_opened_again_after_a_signal) {
  WatchedCalls calls;
  calls.interrupts_ = true;
  EXPECT_EQ(error_text([&] { FileLock lock(file("checkpoint")); }), "");
}

TEST_F(WriteFaults, a_lock_leaves_nothing_where_the_disk_has_none) {
  WatchedCalls calls;
  calls.has_locks_ = false;
  { const FileLock lock(file("checkpoint")); }
  EXPECT_EQ(folder_.num_files(), 0U);
}

TEST_F(WriteFaults, a_lock_is_waited_for_where_its_run_is_ending) {
  auto ending = std::make_unique<FileLock>(file("checkpoint"));
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ending.reset();
  });
  EXPECT_NO_THROW(FileLock(file("checkpoint")));
  end.join();
}

TEST_F(WriteFaults, files_are_told_from_each_other_whatever_they_are_called) {
  namespace fs = std::filesystem;
  folder_.write("a", "");
  folder_.write("b", "");
  fs::create_symlink(file("a"), file("link"));
  EXPECT_TRUE(same_file(file("a"), file("./a")));
  EXPECT_TRUE(same_file(file("a"), file("link")));
  EXPECT_FALSE(same_file(file("a"), file("b")));
  EXPECT_TRUE(same_file(file("not yet"), file("./not yet")));
  EXPECT_FALSE(same_file(file("not yet"), file("a")));
  EXPECT_TRUE(same_file("not yet", "./not yet"));
  EXPECT_FALSE(same_file("not yet", "./neither"));
}

}  // namespace
}  // namespace emplace
