// What messages between ranks cost:
//
//   mpirun --oversubscribe -n 2 build/bench/messages       (--allow-run-as-root for root)
//
// round trips of messages and of buffers that both sides know, by size; the processor time that
// rank 0 takes for a message that it receives; and how many tasks that do nothing a crew does in a
// second.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "dist/crew.h"
#include "dist/member.h"
#include "dist/mpi.h"

namespace {

using namespace emplace;
using namespace emplace::dist;

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Envelope next(Transport& transport) {
  for (;;) {
    if (auto envelope = transport.receive()) return std::move(*envelope);
  }
}

void wait(Transport& transport, Transport::Ticket ticket) {
  while (!transport.done(ticket)) {
  }
}

// Between ranks 0 and 1, in microseconds.
double message_round_trip(Transport& transport, std::size_t size, int times) {
  const double begin = seconds_of(CLOCK_MONOTONIC);
  for (int i = 0; i < times; ++i) {
    if (transport.rank() == 0) transport.send(1, std::string(size, 'x'));
    const Envelope envelope = next(transport);
    if (transport.rank() == 1) transport.send(0, envelope.bytes);
  }
  return (seconds_of(CLOCK_MONOTONIC) - begin) / times * 1e6;
}

double buffer_round_trip(Transport& transport, std::size_t size, int times) {
  std::vector<std::byte> out(size);
  std::vector<std::byte> in(size);
  const int other = 1 - transport.rank();
  const double begin = seconds_of(CLOCK_MONOTONIC);
  for (int i = 0; i < times; ++i) {
    const Transport::Ticket receive = transport.receive_into(other, 7, in);
    if (transport.rank() == 0) wait(transport, transport.send_from(other, 7, out));
    wait(transport, receive);
    if (transport.rank() == 1) wait(transport, transport.send_from(other, 7, out));
  }
  return (seconds_of(CLOCK_MONOTONIC) - begin) / times * 1e6;
}

// The processor time of rank 0 for each of so many messages, in microseconds.
double cost_of_receiving(Transport& transport, std::size_t size, int times) {
  if (transport.rank() == 1) {
    for (int i = 0; i < times; ++i) transport.send(0, std::string(size, 'x'));
    next(transport);
    return 0;
  }
  next(transport);
  const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 1; i < times; ++i) next(transport);
  const double spent = seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
  transport.send(1, "enough");
  return spent / (times - 1) * 1e6;
}

void measure_transport(Transport& transport) {
  for (const std::size_t size : {8, 1'024, 65'536, 1'048'576}) {
    const int times = size > 100'000 ? 200 : 2'000;
    const double message = message_round_trip(transport, size, times);
    const double buffer = buffer_round_trip(transport, size, times);
    const double receiving = cost_of_receiving(transport, size, times);
    if (transport.rank() != 0) continue;
    fmt::print(
        "{:9} B   message {:8.1f} us   buffer {:8.1f} us   receiving {:7.2f} us of processor\n",
        size, message, buffer, receiving);
  }
}

void measure_tasks(std::unique_ptr<Transport> transport) {
  constexpr std::size_t kTasks = 5'000;
  if (transport->rank() > 0) {
    Member member(std::move(transport), {}, [] { std::_Exit(1); });
    member.serve(0, [](Reader&, Line&) { return std::string(1'000, 'x'); });
    return;
  }
  Crew crew(std::move(transport), {});
  std::size_t here = 0;
  Job job;
  job.tasks = kTasks;
  job.describe = [](std::size_t) { return std::string(1'000, 'x'); };
  job.here = [&](std::size_t) {
    ++here;
    // As long as a task that another rank does.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::string(1'000, 'x');
  };
  job.accept = [](std::size_t, Reader&) {};
  job.failed = [](std::size_t, const Error&) {};
  const double begin = seconds_of(CLOCK_MONOTONIC);
  crew.run(job);
  const double seconds = seconds_of(CLOCK_MONOTONIC) - begin;
  fmt::print("{} tasks of other ranks in {:.2f} s: {:.0f} a second\n", kTasks - here, seconds,
             static_cast<double>(kTasks - here) / seconds);
  crew.dismiss();
}

}  // namespace

int main() {
  try {
    std::unique_ptr<Transport> transport = join_mpi("this benchmark");
    if (transport->size() < 2) {
      fmt::print(stderr, "expected two ranks or more: mpirun -n 2 {}\n", "build/bench/messages");
      return 2;
    }
    if (transport->size() == 2) measure_transport(*transport);
    measure_tasks(std::move(transport));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  std::fflush(stdout);
  std::_Exit(0);
}
