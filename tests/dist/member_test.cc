// What a rank does with rank 0's messages, which are sent here as bytes.
#include "dist/member.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/local_transport.h"

namespace emplace::dist {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// Who tells a rank something takes it as told, though its task may have to be begun, and what it
// is about to be read, before anybody listens.
TEST(Member, KeepsNewsUntilItsTaskListens) {
  constexpr PostOptions patient{.lost_after = 60};
  LocalRanks ranks(2);
  const std::unique_ptr<Transport> first = ranks.take(0);
  const auto send = [&](Kind kind, const std::string& body = {}) {
    first->send(1, Writer()
                       .number(kMagic)
                       .number(kVersion)
                       .number(static_cast<std::uint16_t>(kind))
                       .text(body)
                       .take());
  };
  const auto task = [&](std::uint64_t job) {
    send(Kind::kTask, Writer().number(job).number<std::uint64_t>(1).text("").take());
  };
  const auto news = [&](std::uint64_t job, int what) {
    send(Kind::kNews, Writer().number(job).text(Writer().number<std::int32_t>(what).take()).take());
  };
  Member member(ranks.take(1), patient, [] {});
  // Messages come in order, so what was sent before a note has come with it.
  std::atomic<int> notes{0};
  member.on_notes(Topic::kSamples, [&](int, Reader&) { ++notes; });
  const auto note = [&] { send(Kind::kNotice, NoteListeners::bytes(Topic::kSamples, "")); };
  const auto wait_for_notes = [&](int count) {
    while (notes < count) std::this_thread::sleep_for(milliseconds(1));
  };
  std::atomic<int> done{0};
  std::vector<int> heard;
  std::thread serving([&] {
    member.serve(0, [&](Reader&, Line& line) {
      if (++done == 1) {
        wait_for_notes(1);
        return std::string();
      }
      wait_for_notes(2);
      line.listen([&](Reader& body) { heard.push_back(body.number<std::int32_t>()); }, [] {});
      line.hush();
      return std::string();
    });
  });
  task(1);
  while (done < 1) std::this_thread::sleep_for(milliseconds(1));
  task(2);  // while the one before is being done
  news(1, 1);
  news(2, 2);
  note();
  while (done < 2) std::this_thread::sleep_for(milliseconds(1));
  news(2, 3);
  news(1, 4);
  note();
  send(Kind::kLeave);
  send(Kind::kEnd, Writer().flag(false).take());
  serving.join();
  EXPECT_THAT(heard, ElementsAre(2, 3));
}

}  // namespace
}  // namespace emplace::dist
