// Ranks as threads of this process: what they say to each other, and what becomes of a job when
// some of them are lost.
#include "dist/crew.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "dist/local_transport.h"
#include "dist/member.h"
#include "support/error_text.h"

namespace emplace::dist {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr PostOptions kImpatient{.pulse_seconds = 0.02, .lost_after = 0.4};
constexpr std::uint64_t kInput = 7;

// Doubles a number, in its own time.
std::string doubled(Reader& task) {
  return Writer().number(2 * task.number<std::int64_t>()).take();
}

// Ranks 1, 2, ... in threads of their own, which do `work`.
class Others {
 public:
  Others(LocalRanks& ranks, int size, Member::Work work, std::uint64_t input = kInput) {
    for (int rank = 1; rank < size; ++rank) {
      members_.push_back(std::make_unique<Member>(ranks.take(rank), kImpatient,
                                                  [this, rank] { abandoned_ |= 1 << rank; }));
      threads_.emplace_back(
          [member = members_.back().get(), work, input] { member->serve(input, work); });
    }
  }
  ~Others() {
    for (std::thread& thread : threads_) thread.join();
  }
  int abandoned() const { return abandoned_; }

 private:
  std::atomic<int> abandoned_{0};
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::thread> threads_;
};

struct Doubling {
  explicit Doubling(std::size_t tasks) : results(tasks, 0) {
    job.tasks = tasks;
    job.describe = [](std::size_t task) {
      return Writer().number(static_cast<std::int64_t>(task)).take();
    };
    job.here = [](std::size_t task) {
      std::this_thread::sleep_for(milliseconds(1));
      return Writer().number(2 * static_cast<std::int64_t>(task)).take();
    };
    job.accept = [this](std::size_t task, Reader& result) {
      results[task] = result.number<std::int64_t>();
      result.end();
      ++accepted;
    };
    job.failed = [this](std::size_t task, const Error& error) {
      results[task] = -1;
      failures.push_back(error.what());
    };
  }
  bool complete() const {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] != 2 * static_cast<std::int64_t>(i)) return false;
    }
    return true;
  }

  Job job;
  std::vector<std::int64_t> results;
  std::vector<std::string> failures;
  int accepted = 0;
};

TEST(Crew, TasksAreSharedAndAllAreDone) {
  LocalRanks ranks(4);
  std::atomic<int> elsewhere{0};
  Others others(ranks, 4, [&](Reader& task, Line&) {
    ++elsewhere;
    std::this_thread::sleep_for(milliseconds(1));
    return doubled(task);
  });
  Crew crew(ranks.take(0), kImpatient);
  crew.expect(kInput);
  for (int round = 0; round < 3; ++round) {
    Doubling doubling(200);
    crew.run(doubling.job);
    EXPECT_TRUE(doubling.complete());
    EXPECT_EQ(doubling.accepted, 200);
  }
  EXPECT_GT(elsewhere, 100);
  EXPECT_TRUE(crew.dismiss());
  EXPECT_EQ(crew.lost(), 0);
}

TEST(Crew, WhatALostRankDidIsDoneByOthers) {
  LocalRanks ranks(3);
  std::atomic<bool> holding{false};
  Others others(ranks, 3, [&](Reader& task, Line& line) {
    const auto number = task.number<std::int64_t>();
    if (number == 5) {
      holding = true;
      while (!line.stopped()) std::this_thread::sleep_for(milliseconds(5));
    }
    return Writer().number(2 * number).take();
  });
  // Whoever has task 5 is lost with it.
  Crew crew(ranks.take(0), kImpatient);
  Doubling doubling(40);
  doubling.job.here = [&](std::size_t task) {
    // Leaves the fifth to the others, as long as they have not begun it.
    for (int i = 0; i < 200 && !holding; ++i) std::this_thread::sleep_for(milliseconds(5));
    if (holding) {
      ranks.silence(1);
      ranks.silence(2);
    }
    return Writer().number(2 * static_cast<std::int64_t>(task)).take();
  };
  crew.run(doubling.job);
  EXPECT_TRUE(doubling.complete());
  EXPECT_EQ(crew.lost(), 2);
  EXPECT_THAT(crew.take_notes(), SizeIs(2));
  EXPECT_FALSE(crew.dismiss());
  ranks.silence(1, false);
  ranks.silence(2, false);
}

TEST(Crew, AnErrorOfATaskIsItsResult) {
  LocalRanks ranks(2);
  Others others(ranks, 2, [](Reader&, Line&) -> std::string { fail_input("no link"); });
  Crew crew(ranks.take(0), kImpatient);
  Doubling doubling(2);
  doubling.job.here = [&](std::size_t) -> std::string {
    std::this_thread::sleep_for(milliseconds(100));
    fail_input("no link");
  };
  crew.run(doubling.job);
  EXPECT_THAT(doubling.failures, ElementsAre("no link", "no link"));
}

TEST(Crew, NonsenseMakesItsSenderLost) {
  LocalRanks ranks(2);
  Others others(ranks, 2, [](Reader&, Line&) { return std::string("no"); });
  Crew crew(ranks.take(0), kImpatient);
  Doubling doubling(30);
  crew.run(doubling.job);
  EXPECT_TRUE(doubling.complete());
  EXPECT_EQ(crew.lost(), 1);
  EXPECT_THAT(crew.take_notes(), ElementsAre(HasSubstr("rank 1 on here was lost: a message")));
}

TEST(Crew, MessagesOfAnotherVersionAreRefused) {
  LocalRanks ranks(2);
  const std::unique_ptr<Transport> other = ranks.take(1);
  Crew crew(ranks.take(0), kImpatient);
  std::string bytes = Writer()
                          .number<std::uint32_t>(kMagic)
                          .number<std::uint16_t>(9)
                          .number<std::uint16_t>(0)
                          .text("")
                          .take();
  other->send(0, bytes);
  for (int i = 0; i < 100 && crew.lost() == 0; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_THAT(crew.take_notes(), ElementsAre(HasSubstr("speaks version 9")));
}

// Frames of every kind around any bytes: their sender is lost, or they change nothing.
TEST(Crew, ARankThatSendsAnythingAtAllSpoilsNothing) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    LocalRanks ranks(3);
    const std::unique_ptr<Transport> noisy = ranks.take(1);
    Member honest(ranks.take(2), kImpatient, [] {});
    std::thread serving(
        [&] { honest.serve(kInput, [](Reader& task, Line&) { return doubled(task); }); });
    Crew crew(ranks.take(0), kImpatient);
    std::atomic<bool> over = false;
    std::thread talking([&] {
      Rng rng(seed);
      for (int i = 0; i < 200 && !over; ++i) {
        // Not "failed", which is an answer: the rank could not read its input.
        const auto kind = static_cast<std::uint16_t>(rng.below(14));
        if (kind == static_cast<std::uint16_t>(Kind::kFailed)) continue;
        std::string body;
        for (auto left = rng.below(40); left > 0; --left) {
          body += static_cast<char>(rng.below(4) == 0 ? rng.below(256) : rng.below(3));
        }
        const std::uint32_t magic = rng.below(50) == 0 ? 1 : kMagic;
        noisy->send(0, Writer().number(magic).number(kVersion).number(kind).text(body).take());
      }
    });
    Doubling doubling(20);
    crew.run(doubling.job);
    over = true;
    talking.join();
    EXPECT_TRUE(doubling.complete()) << seed;
    EXPECT_TRUE(doubling.failures.empty()) << seed;
    crew.dismiss();
    serving.join();
  }
}

TEST(Crew, ASilentRankIsLostAndLearnsOfItWhenItWakes) {
  LocalRanks ranks(2);
  Others others(ranks, 2, [](Reader& task, Line&) { return doubled(task); });
  Crew crew(ranks.take(0), kImpatient);
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(crew.lost(), 0);
  ranks.silence(1);
  std::this_thread::sleep_for(milliseconds(700));
  EXPECT_EQ(crew.lost(), 1);
  EXPECT_EQ(others.abandoned(), 2);  // it does not hear of rank 0 either
  ranks.silence(1, false);
  crew.dismiss();
}

TEST(Crew, ARankWithAnotherInputIsAnError) {
  LocalRanks ranks(2);
  Others others(
      ranks, 2, [](Reader& task, Line&) { return doubled(task); }, kInput + 1);
  Crew crew(ranks.take(0), kImpatient);
  crew.expect(kInput);
  Doubling doubling(1'000);
  EXPECT_THAT(error_text([&] { crew.run(doubling.job); }), HasSubstr("reads another input"));
}

TEST(Crew, ARankOfAnotherBuildIsAnError) {
  PostOptions newer = kImpatient;
  newer.build = "0.1.0+g2";
  PostOptions older = kImpatient;
  older.build = "0.1.0+g1";
  LocalRanks ranks(2);
  Member other(ranks.take(1), older, [] {});
  std::thread serving(
      [&] { other.serve(kInput, [](Reader& task, Line&) { return doubled(task); }); });
  Crew crew(ranks.take(0), newer);
  crew.expect(kInput);
  Doubling doubling(1'000);
  EXPECT_THAT(error_text([&] { crew.run(doubling.job); }),
              HasSubstr("rank 1 on here runs emplace 0.1.0+g1; expected 0.1.0+g2"));
  crew.dismiss();
  serving.join();
}

TEST(Crew, WhatIsDoneInVainIsToldSo) {
  LocalRanks ranks(2);
  Member other(ranks.take(1), kImpatient, [] {});
  std::thread failing([&] { other.fail("model.onnx: no such file"); });
  Crew crew(ranks.take(0), kImpatient);
  std::atomic<bool> in_vain{false};
  crew.when_failed([&] { in_vain = true; });
  Doubling doubling(3);
  doubling.job.here = [&](std::size_t) {
    for (int i = 0; i < 1'000 && !in_vain; ++i) std::this_thread::sleep_for(milliseconds(5));
    EXPECT_TRUE(in_vain);
    return Writer().number<std::int64_t>(0).take();
  };
  EXPECT_THAT(error_text([&] { crew.run(doubling.job); }),
              HasSubstr("rank 1: model.onnx: no such file"));
  EXPECT_THAT(error_text([&] { crew.check(); }), HasSubstr("model.onnx"));
  crew.dismiss();
  failing.join();
}

TEST(Crew, TasksMayComeUpOneAfterTheOther) {
  LocalRanks ranks(3);
  std::atomic<int> elsewhere{0};
  Others others(ranks, 3, [&](Reader& task, Line&) {
    ++elsewhere;
    std::this_thread::sleep_for(milliseconds(1));
    return doubled(task);
  });
  Crew crew(ranks.take(0), kImpatient);
  constexpr std::size_t kTasks = 60;
  constexpr std::size_t kAhead = 4;  // a task comes up when the one so many before it is done
  std::mutex mutex;
  std::vector<bool> done(kTasks, false);
  std::size_t next = 0;
  Doubling doubling(kTasks);
  doubling.job.tasks = 0;
  doubling.job.more = [&] {
    const std::lock_guard lock(mutex);
    if (next == kTasks || (next >= kAhead && !done[next - kAhead])) return false;
    ++next;
    return true;
  };
  const auto accept = doubling.job.accept;
  doubling.job.accept = [&](std::size_t task, Reader& result) {
    accept(task, result);
    const std::lock_guard lock(mutex);
    done[task] = true;
  };
  crew.run(doubling.job);
  EXPECT_TRUE(doubling.complete());
  EXPECT_GT(elsewhere, 10);
  EXPECT_TRUE(crew.dismiss());
}

TEST(Crew, NotesGoBetweenAnyTwo) {
  LocalRanks ranks(3);
  Crew crew(ranks.take(0), kImpatient);
  Member one(ranks.take(1), kImpatient, [] {});
  Member two(ranks.take(2), kImpatient, [] {});
  std::atomic<int> heard{0};
  const auto passes_on = [&](Notes& notes, int from, int to) {
    notes.on_notes(Topic::kSamples, [&notes, &heard, from, to](int sender, Reader& body) {
      EXPECT_EQ(sender, from);
      const auto value = body.number<int>();
      body.end();
      if (to != notes.rank()) notes.note(to, Topic::kSamples, Writer().number(value + 1).take());
      heard += value;
    });
  };
  passes_on(two, 1, 0);
  passes_on(one, 0, 2);
  passes_on(crew, 2, 0);
  // Others hear of other topics.
  std::atomic<int> values{0};
  one.on_notes(Topic::kValues, [&](int, Reader& body) { values += body.number<int>(); });
  crew.note(1, Topic::kShards, Writer().number(100).take());
  crew.note(1, Topic::kValues, Writer().number(10).take());
  crew.note(1, Topic::kSamples, Writer().number(1).take());
  for (int i = 0; i < 400 && heard < 6; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(heard, 1 + 2 + 3);
  EXPECT_EQ(values, 10);
  std::thread first([&] { one.wait(); });
  std::thread second([&] { two.wait(); });
  EXPECT_TRUE(crew.dismiss());
  first.join();
  second.join();
}

// Whoever takes none now may have to when another is lost.
TEST(Crew, SomeRanksTakeNoTasks) {
  LocalRanks ranks(3);
  std::atomic<bool> lost{false};
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  const auto work = [](std::atomic<int>& count) {
    return [&count](Reader& task, Line&) {
      ++count;
      std::this_thread::sleep_for(milliseconds(1));
      return doubled(task);
    };
  };
  Member one(ranks.take(1), kImpatient, [] {});
  Member two(ranks.take(2), kImpatient, [] {});
  std::thread serving_one([&] { one.serve(kInput, work(first)); });
  std::thread serving_two([&] { two.serve(kInput, work(second)); });
  Crew crew(ranks.take(0), kImpatient);
  Doubling before(200);
  before.job.takes = [&](int rank) { return rank == 1; };
  crew.run(before.job);
  EXPECT_TRUE(before.complete());
  EXPECT_GT(first, 0);
  EXPECT_EQ(second, 0);
  Doubling after(5'000);
  after.job.takes = [&](int rank) { return rank == (crew.present(1) ? 1 : 2); };
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(20));
    ranks.silence(1);
  });
  crew.run(after.job);
  killer.join();
  EXPECT_TRUE(after.complete());
  EXPECT_EQ(crew.lost(), 1);
  EXPECT_GT(second, 0);
  crew.dismiss();
  ranks.silence(1, false);
  serving_one.join();
  serving_two.join();
}

TEST(Crew, InputsAreComparedAlsoWhereRanksAreReadyFirst) {
  LocalRanks ranks(2);
  std::atomic<bool> working{false};
  Others others(
      ranks, 2,
      [&](Reader& task, Line&) {
        working = true;
        return doubled(task);
      },
      kInput + 1);
  Crew crew(ranks.take(0), kImpatient);
  // It has a task, so it has said that it is ready.
  Doubling before(1'000);
  before.job.here = [&](std::size_t task) {
    for (int i = 0; i < 400 && !working; ++i) std::this_thread::sleep_for(milliseconds(5));
    return Writer().number(2 * static_cast<std::int64_t>(task)).take();
  };
  crew.run(before.job);
  ASSERT_TRUE(working);
  crew.expect(kInput);
  Doubling doubling(10);
  EXPECT_THAT(error_text([&] { crew.run(doubling.job); }), HasSubstr("reads another input"));
}

TEST(Crew, TheFirstTaskIsDoneHere) {
  LocalRanks ranks(3);
  Others others(ranks, 3, [](Reader& task, Line&) {
    std::this_thread::sleep_for(milliseconds(1));
    return doubled(task);
  });
  Crew crew(ranks.take(0), kImpatient);
  for (int round = 0; round < 20; ++round) {
    Doubling doubling(10);
    std::atomic<bool> here{false};
    const auto usual = doubling.job.here;
    doubling.job.here = [&](std::size_t task) {
      if (task == 0) here = true;
      return usual(task);
    };
    crew.run(doubling.job);
    EXPECT_TRUE(here);
    EXPECT_TRUE(doubling.complete());
  }
  EXPECT_TRUE(crew.dismiss());
}

TEST(Crew, TasksStayWithTheirKeepersAsLongAsTheseAreThere) {
  LocalRanks ranks(3);
  Others others(ranks, 3, [](Reader& task, Line&) { return doubled(task); });
  Crew crew(ranks.take(0), kImpatient);
  const std::vector<int> keepers{0, 1, 1, 2, 2, 2, 2, 2, 0, 0, 0, 1};
  std::vector<int> doers;
  const auto run = [&] {
    doers.assign(keepers.size(), 0);
    Doubling doubling(keepers.size());
    doubling.job.keepers = keepers;
    doubling.job.describe_to = [&](std::size_t task, int rank) {
      doers[task] = rank;
      return Writer().number(static_cast<std::int64_t>(task)).take();
    };
    crew.run(doubling.job);
    EXPECT_TRUE(doubling.complete());
  };
  run();
  EXPECT_EQ(doers, keepers);
  ranks.silence(2);
  run();
  EXPECT_EQ(crew.lost(), 1);
  for (std::size_t task = 0; task < doers.size(); ++task) {
    EXPECT_EQ(doers[task] == keepers[task], keepers[task] != 2) << task;
  }
  ranks.silence(2, false);
  crew.dismiss();
}

// At once: also where nobody is ever lost for being silent.
TEST(Crew, ARankThatRunsOutOfMemoryIsLostAndNothingElse) {
  for (const double lost_after : {kImpatient.lost_after, 1e9}) {
    LocalRanks ranks(3);
    std::atomic<bool> thrown{false};
    Others others(ranks, 3, [&](Reader& task, Line&) {
      if (!thrown.exchange(true)) throw std::bad_alloc();
      return doubled(task);
    });
    Crew crew(ranks.take(0), {.pulse_seconds = 0.02, .lost_after = lost_after});
    Doubling doubling(40);
    doubling.job.here = [&](std::size_t task) {
      for (int i = 0; i < 200 && !thrown; ++i) std::this_thread::sleep_for(milliseconds(5));
      return Writer().number(2 * static_cast<std::int64_t>(task)).take();
    };
    crew.run(doubling.job);
    EXPECT_TRUE(thrown);
    EXPECT_TRUE(doubling.complete());
    EXPECT_THAT(doubling.failures, IsEmpty());
    EXPECT_EQ(crew.lost(), 1);
    EXPECT_NE(others.abandoned(), 0);
    crew.dismiss();
  }
}

TEST(Crew, ASearchOnEachRankEndsWithTheFirst) {
  LocalRanks ranks(3);
  std::atomic<int> heard{0};
  Others others(ranks, 3, [&](Reader& task, Line& line) {
    std::atomic<bool> told{false};
    line.listen(
        [&](Reader& news) {
          if (news.text() == "from 0") ++heard;
        },
        [&] {
          if (!told.exchange(true)) line.tell(Writer().text("from another").take());
        });
    while (!line.stopped()) std::this_thread::sleep_for(milliseconds(2));
    return doubled(task);
  });
  Crew crew(ranks.take(0), kImpatient);
  Doubling doubling(3);
  std::atomic<int> news{0};
  doubling.job.one_each = true;
  doubling.job.on_news = [&](Reader& reader) { news += reader.text() == "from another"; };
  doubling.job.here = [&](std::size_t task) {
    for (int i = 0; i < 500 && news < 2; ++i) std::this_thread::sleep_for(milliseconds(2));
    crew.tell(Writer().text("from 0").take());
    std::this_thread::sleep_for(milliseconds(50));
    return Writer().number(2 * static_cast<std::int64_t>(task)).take();
  };
  crew.run(doubling.job);
  EXPECT_TRUE(doubling.complete());
  EXPECT_EQ(news, 2);
  EXPECT_EQ(heard, 2);
}

TEST(Crew, WhatIsCancelledEndsSoon) {
  LocalRanks ranks(2);
  Others others(ranks, 2, [](Reader& task, Line& line) {
    while (!line.stopped()) std::this_thread::sleep_for(milliseconds(2));
    return doubled(task);
  });
  Crew crew(ranks.take(0), kImpatient);
  std::atomic<bool> cancelled{false};
  Doubling doubling(100'000);
  doubling.job.cancelled = &cancelled;
  doubling.job.here = [&](std::size_t task) {
    std::this_thread::sleep_for(milliseconds(50));
    cancelled = true;
    return Writer().number(2 * static_cast<std::int64_t>(task)).take();
  };
  crew.run(doubling.job);
  EXPECT_GE(doubling.accepted, 1);
  EXPECT_LE(doubling.accepted, 3);
}

// Whoever goes on alone has all processors.
TEST(LocalTransport, OfOneThatIsAloneHasTheMachineToItself) {
  const auto transport = silent_transport(64);
  EXPECT_EQ(transport->size(), 64);
  EXPECT_EQ(transport->ranks_here(), 1);
}

TEST(LocalTransport, BuffersMeetByTagInOrder) {
  LocalRanks ranks(2);
  const std::unique_ptr<Transport> a = ranks.take(0);
  const std::unique_ptr<Transport> b = ranks.take(1);
  std::vector<std::byte> sent(8);
  std::vector<std::byte> received(8);
  sent[3] = std::byte{9};
  const Transport::Ticket receive = b->receive_into(0, 5, received);
  EXPECT_FALSE(b->done(receive));
  const Transport::Ticket send = a->send_from(1, 5, sent);
  EXPECT_TRUE(a->done(send));
  EXPECT_TRUE(b->done(receive));
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace emplace::dist
